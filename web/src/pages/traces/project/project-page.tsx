import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Calculator } from "lucide-react";
import { useMemo, useState } from "react";
import { Page } from "../../../frame/header.tsx";
import { useKeys } from "../../../frame/keys.ts";
import { Button } from "../../../ui/button.tsx";
import { Id } from "../../../ui/code-block.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Table } from "../../../ui/table/table.tsx";
import { sortOf, sortText } from "../../experiments/routes.ts";
import { SessionMenu } from "../../experiments/sessions/session-menu.tsx";
import { projectRoute } from "../page.ts";
import { NoTraces } from "../projects-page.tsx";
import { DEFAULT_SORT, matchingStatsQuery, projectQuery, runsQuery } from "../queries.ts";
import { COLUMNS } from "./columns.tsx";
import { Filters } from "./filters.tsx";
import { ProjectStats } from "./project-stats.tsx";
import { RecomputeCosts } from "./recompute-costs.tsx";
import { isFiltered, type ProjectSearch } from "./search.ts";

const CRUMBS = [{ label: "Traces", to: "/traces" }];

/** The traces of a project, by default newest first, and the project's statistics. New traces appear while the page is open. */
export function ProjectPage() {
  const { id } = projectRoute.useParams();
  const search = projectRoute.useSearch();
  const navigate = projectRoute.useNavigate();
  const sort = sortOf(search.sort, DEFAULT_SORT);
  const [selected, setSelected] = useState<string>();
  const [isRecomputing, setRecomputing] = useState(false);
  const project = useQuery(projectQuery(id));
  const matching = useQuery(matchingStatsQuery(id, search));
  const list = useInfiniteQuery(runsQuery(id, search, sort));
  const runs = useMemo(() => list.data?.pages.flatMap((page) => page.runs), [list.data]);
  const change = (changed: ProjectSearch) =>
    void navigate({ params: { id }, search: (before: ProjectSearch) => ({ ...before, ...changed }), replace: true });
  useKeys({ "/": { does: "Search traces", run: () => document.querySelector<HTMLElement>("search input")?.focus() } });
  if (project.error && !project.data)
    return (
      <Page title="Project" crumbs={CRUMBS}>
        <ErrorState error={project.error} retry={() => void project.refetch()} />
      </Page>
    );
  return (
    <Page
      title={project.data?.name ?? "Project"}
      crumbs={CRUMBS}
      beside={<Id id={id} />}
      fill
      actions={
        project.data &&
        (project.data.reference_dataset_id ? (
          <Button asChild>
            <Link to="/experiments/sessions/$id" params={{ id }}>
              Open experiment
            </Link>
          </Button>
        ) : (
          <SessionMenu
            session={project.data}
            isBaseline={false}
            items={[{ label: "Recompute costs", icon: <Calculator size={14} />, onSelect: () => setRecomputing(true) }]}
            onDeleted={() => navigate({ to: "/traces", search: {} })}
          />
        ))
      }
    >
      {project.data && (
        <ProjectStats project={project.data} matching={isFiltered(search) ? matching.data : undefined} />
      )}
      <Filters search={search} onChange={change} />
      {list.error && !runs ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : runs ? (
        <Table
          name="Traces"
          rows={runs}
          columns={COLUMNS}
          keyOf={(run) => run.id}
          sort={sort}
          onSort={(chosen) => change({ sort: sortText(chosen, DEFAULT_SORT) })}
          selected={selected}
          onSelect={setSelected}
          onOpen={(run) =>
            void navigate({
              to: "/traces/$id",
              params: { id: run.trace_id },
              search: run.id === run.trace_id ? {} : { run: run.id },
            })
          }
          onEnd={() => list.hasNextPage && !list.isFetchingNextPage && void list.fetchNextPage()}
          className="flex-1 border-line border-t"
          empty={
            isFiltered(search) ? (
              <EmptyState title="No traces match">Change the filters to see other traces.</EmptyState>
            ) : (
              <NoTraces project={project.data?.name} />
            )
          }
        />
      ) : (
        <SkeletonRows label="Loading traces" rows={10} />
      )}
      {isRecomputing && project.data && <RecomputeCosts project={project.data} onClose={() => setRecomputing(false)} />}
    </Page>
  );
}
