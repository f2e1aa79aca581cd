import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { RunOverviewItem } from "../../../../src/agent-server/contract/app-runs.ts";
import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { API_URL } from "../../api/base.ts";
import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Button } from "../../ui/button.tsx";
import { count } from "../../ui/format.ts";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Table } from "../../ui/table.tsx";
import { toast } from "../../ui/toast.tsx";
import { CancelDialog } from "./cancel-dialog.tsx";
import { columnsFor, isActive } from "./columns.tsx";
import { Filters } from "./filters.tsx";
import { type RunsSearch, runsRoute } from "./page.ts";
import { assistantsQuery, cancelRun, partOfId, runsKey, runsQuery } from "./queries.ts";
import { RunSheet } from "./run-sheet.tsx";
import { Throughput } from "./throughput.tsx";

/** All runs over all threads, as they come and go. */
export function RunsPage() {
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
  useKeys({ x: { does: "Cancel several runs", run: () => setCancelling(true) } });

  const part = partOfId(search.thread);
  const runs = (list.data?.pages.flatMap((page) => page.runs) ?? []).filter(
    (run) => part === undefined || run.thread_id.includes(part),
  );
  // What has ended meanwhile can be cancelled no more.
  const cancellable = runs.filter((run) => chosen.has(run.run_id) && isActive(run));
  const nameOf = ({ assistant_id, graph_id }: RunOverviewItem): string =>
    assistants.find((assistant) => assistant.assistant_id === assistant_id)?.name ?? graph_id;
  const cancel = (run: RunOverviewItem, action: CancelAction) => cancelling.mutate({ run, action });
  const choose = (run_id: string, is: boolean) =>
    setChosen((before) => new Set(is ? [...before, run_id] : [...before].filter((id) => id !== run_id)));
  const look = (run: string | undefined) =>
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
          // Others may run than those that are listed, so only a list of all tells that there are none.
          disabled={list.data !== undefined && !isFiltered(search) && !list.hasNextPage && !runs.some(isActive)}
          onClick={() => setCancelling(true)}
        >
          {cancellable.length > 0 ? `Cancel ${count(cancellable.length)} …` : "Cancel several …"}
        </Button>
      }
    >
      <Throughput />
      <Filters />
      {list.error && !list.data ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : list.isPending ? (
        <SkeletonRows label="Fetching the runs" rows={10} />
      ) : (
        <Table
          name="Runs"
          rows={runs}
          columns={columnsFor({ chosen, choose, cancel, nameOf, now: list.dataUpdatedAt })}
          keyOf={({ run_id }) => run_id}
          selected={search.run}
          onSelect={(run_id) => look(run_id)}
          onOpen={({ run_id }) => look(run_id)}
          onEnd={more}
          empty={<NoRuns isFiltered={isFiltered(search)} more={list.hasNextPage ? more : undefined} />}
          className="flex-1 border-line border-t"
        />
      )}
      <RunSheet run_id={search.run} nameOf={nameOf} onCancel={cancel} onClose={() => look(undefined)} />
      {isCancelling && <CancelDialog chosen={cancellable} onClose={() => setCancelling(false)} />}
    </Page>
  );
}

const isFiltered = ({ status, assistant, thread, since }: RunsSearch): boolean =>
  (status ?? assistant ?? thread ?? since) !== undefined;

const FIRST_RUN = `curl ${API_URL}/runs -H 'content-type: application/json' \\
  -d '{"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "hello"}]}}'`;

function NoRuns({ isFiltered, more }: { isFiltered: boolean; more: (() => void) | undefined }) {
  if (!isFiltered)
    return (
      <EmptyState title="No runs yet" command={FIRST_RUN}>
        Every run of the workspace is listed here as soon as it is accepted, whatever started it.
      </EmptyState>
    );
  return (
    <EmptyState
      title={more ? "None among the last ones" : "No run is like that"}
      action={more && <Button onClick={more}>Look further back</Button>}
    >
      {more ? "There are older runs." : "Other filters may show some."}
    </EmptyState>
  );
}
