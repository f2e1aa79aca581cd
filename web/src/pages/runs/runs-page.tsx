import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { RunOverviewItem } from "../../../../src/agent-server/contract/app-runs.ts";
import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { API_URL } from "../../api/request.ts";
import { useTarget } from "../../api/target.ts";
import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Button } from "../../ui/button.tsx";
import { count } from "../../ui/format.ts";
import { toast } from "../../ui/overlay/toast.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Table } from "../../ui/table/table.tsx";
import { assistantsQuery } from "../agents/queries.ts";
import { cancelRun } from "./cancel-actions.ts";
import { CancelDialog } from "./cancel-dialog.tsx";
import { columnsFor, isActive } from "./columns.tsx";
import { Filters, RunsNav } from "./filters.tsx";
import { isFiltered, type RunsSearch, runsRoute } from "./page.ts";
import { partOfId, runsKey, runsQuery } from "./queries.ts";
import { RunSheet } from "./run-sheet.tsx";
import { Throughput } from "./throughput.tsx";

export function RunsPage() {
  const target = useTarget();
  if (target === undefined) return <RunsOfServer />;
  return (
    <Page title="Runs">
      <EmptyState title="The runs of a deployment are listed per thread">
        To see or cancel runs, open their thread. You can also see the{" "}
        <Link to="/threads" search={{ status: "error" }} className="text-accent-text underline">
          failed threads
        </Link>
        , or select “This server” above.
      </EmptyState>
    </Page>
  );
}

function RunsOfServer() {
  const search = runsRoute.useSearch();
  const navigate = runsRoute.useNavigate();
  const client = useQueryClient();
  const list = useInfiniteQuery(runsQuery(search));
  const { data: assistants = [] } = useQuery(assistantsQuery);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isCancelling, setCancelling] = useState(false);
  const cancelling = useMutation({
    mutationFn: ({ run, action }: { run: RunOverviewItem; action: CancelAction }) => cancelRun(run, action),
    onError: (error) => toast(error.message, { error: true }),
    onSettled: () => client.invalidateQueries({ queryKey: runsKey }),
  });
  useKeys({ x: { does: "Cancel runs", run: () => setCancelling(true) } });

  const part = partOfId(search.thread);
  const runs = (list.data?.pages.flatMap((page) => page.runs) ?? []).filter(
    (run) => part === undefined || run.thread_id.includes(part),
  );
  // A selected run may have ended since the selection and can then no longer be cancelled.
  const cancellable = runs.filter((run) => chosen.has(run.run_id) && isActive(run));
  const nameOf = ({ assistant_id, graph_id }: RunOverviewItem): string =>
    assistants.find((assistant) => assistant.assistant_id === assistant_id)?.name ?? graph_id;
  const cancel = (run: RunOverviewItem, action: CancelAction) => cancelling.mutate({ run, action });
  const choose = (run_id: string, isChosen: boolean) =>
    setChosen((before) => new Set(isChosen ? [...before, run_id] : [...before].filter((id) => id !== run_id)));
  const open = (run: string | undefined) =>
    void navigate({ search: (before: RunsSearch) => ({ ...before, run }), replace: search.run !== undefined });
  const more = () => void (list.hasNextPage && !list.isFetchingNextPage && list.fetchNextPage());

  return (
    <Page
      title="Runs"
      fill
      actions={
        <Button
          look={cancellable.length > 0 ? "danger" : "plain"}
          aria-keyshortcuts="x"
          // Disabled only if the list is complete, unfiltered and without active runs.
          disabled={list.data !== undefined && !isFiltered(search) && !list.hasNextPage && !runs.some(isActive)}
          onClick={() => setCancelling(true)}
        >
          {cancellable.length > 0 ? `Cancel ${count(cancellable.length)}…` : "Cancel runs…"}
        </Button>
      }
    >
      <RunsNav />
      <Throughput />
      <Filters />
      {list.error && !list.data ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : list.isPending ? (
        <SkeletonRows label="Loading runs" height={56} />
      ) : (
        <Table
          name="Runs"
          rowHeight={56}
          rows={runs}
          columns={columnsFor({ chosen, choose, cancel, nameOf, now: list.dataUpdatedAt })}
          keyOf={({ run_id }) => run_id}
          selected={search.run}
          onSelect={(run_id) => open(run_id)}
          onOpen={({ run_id }) => open(run_id)}
          onEnd={more}
          empty={<NoRuns isFiltered={isFiltered(search)} more={list.hasNextPage ? more : undefined} />}
          className="flex-1 border-line border-t"
        />
      )}
      <RunSheet run_id={search.run} nameOf={nameOf} onCancel={cancel} onClose={() => open(undefined)} />
      {isCancelling && <CancelDialog chosen={cancellable} onClose={() => setCancelling(false)} />}
    </Page>
  );
}

const FIRST_RUN = `curl ${API_URL}/runs -H 'content-type: application/json' \\
  -d '{"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "hello"}]}}'`;

function NoRuns({ isFiltered, more }: { isFiltered: boolean; more: (() => void) | undefined }) {
  if (!isFiltered)
    return (
      <EmptyState title="No runs yet" command={FIRST_RUN}>
        All runs of the workspace appear here as soon as they are created.
      </EmptyState>
    );
  return (
    <EmptyState
      title={more ? "No recent runs match" : "No runs match"}
      action={more && <Button onClick={more}>Load older runs</Button>}
    >
      {more ? "Older runs may match the filters." : "Change the filters to see other runs."}
    </EmptyState>
  );
}
