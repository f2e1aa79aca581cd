import { useQuery } from "@tanstack/react-query";
import { ChevronDown, ChevronUp } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import type { ComparedRow } from "../../../../../../src/experiments/contract/app-comparison.ts";
import type { ExampleWithRuns } from "../../../../../../src/experiments/contract/comparison.ts";
import { Button } from "../../../../ui/button.tsx";
import { Select } from "../../../../ui/form/select.tsx";
import { count } from "../../../../ui/format.ts";
import { HueDot } from "../../../../ui/hue-dot.tsx";
import { JsonTree } from "../../../../ui/json-tree.tsx";
import { DetailSection } from "../../../../ui/layout.tsx";
import { Sheet } from "../../../../ui/overlay/dialog.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../../ui/states.tsx";
import { detailQuery, type Narrowing, positionQuery } from "../queries.ts";
import type { Slot } from "../rows/slots.ts";
import type { Rows } from "../rows/use-rows.ts";
import type { Search } from "../search.ts";
import type { View } from "../view.ts";
import { Payload } from "./payload.tsx";
import { RunCard } from "./run-card.tsx";

const DIFF_MODES = [
  { value: "baseline", label: "Diff against baseline" },
  { value: "expected", label: "Diff against expected" },
  { value: "nothing", label: "No diff" },
] as const;

interface RowDetailProps {
  view: View;
  search: Search;
  rows: Rows;
  narrowing: Narrowing;
  onGo(slot: Slot): void;
  onChange(patch: Partial<Search>, options?: { replace?: boolean }): void;
  onClose(): void;
}

/** Details of an example: input, expected output, and each experiment's output and scores. */
export function RowDetail(props: RowDetailProps) {
  const { search, onClose } = props;
  return search.row === undefined ? null : <OpenDetail {...props} row={search.row} onClose={onClose} />;
}

function OpenDetail({ view, search, rows, narrowing, row, onGo, onChange, onClose }: RowDetailProps & { row: string }) {
  const { dataset_id, shown } = view;
  const ids = shown.map(({ id }) => id);
  const detail = useQuery(detailQuery(dataset_id, ids, row));
  const loaded = rows.slots?.findIndex((slot) => slot.row?.example_id === row) ?? -1;
  // The example's row may not be loaded yet, for example after opening a URL.
  const position = useQuery({ ...positionQuery(dataset_id, narrowing, row), enabled: loaded === -1 });
  const at = loaded === -1 ? (position.data ?? undefined) : loaded;
  const { onOpened } = rows;
  // The neighbours are where j, k and the buttons go.
  useEffect(() => {
    onOpened(at);
    return () => onOpened(undefined);
  }, [at, onOpened]);
  const beside = (by: number): Slot | undefined => (at === undefined ? undefined : rows.slots?.[at + by]);
  const step = (by: number, label: string, Icon: typeof ChevronUp) => (
    <Button
      look="quiet"
      small
      square
      aria-label={label}
      disabled={!beside(by)?.row}
      onClick={() => onGo(beside(by) as Slot)}
    >
      <Icon size={16} />
    </Button>
  );
  const against = search.against ?? (shown.length > 1 ? "baseline" : "expected");
  return (
    <Sheet
      open
      modal={false}
      onClose={onClose}
      width={920}
      title={`Example ${detail.data?.name ?? ""}`}
      description={
        at === undefined
          ? "The current filters exclude this example from the table"
          : `Row ${count(at + 1)} of ${count(rows.total)} in the table`
      }
      actions={
        <>
          {step(-1, "Previous row (k)", ChevronUp)}
          {step(1, "Next row (j)", ChevronDown)}
        </>
      }
    >
      {detail.error && <ErrorState error={detail.error} retry={() => void detail.refetch()} />}
      {detail.isPending && <SkeletonRows label="Loading example" height={56} />}
      {detail.data === null && (
        <EmptyState title="No runs for this example">The example may have been removed from the dataset.</EmptyState>
      )}
      {detail.data && (
        <Detail example={detail.data} row={rows.slots?.[loaded]?.row} view={view} against={against}>
          <Select
            aria-label="Outputs"
            className="max-w-full"
            value={against}
            options={DIFF_MODES}
            onChange={(chosen) => onChange({ against: chosen }, { replace: true })}
          />
        </Detail>
      )}
    </Sheet>
  );
}

function Detail({
  example,
  row,
  view,
  against,
  children,
}: {
  example: ExampleWithRuns;
  /** The row of the table. Undefined if it is not loaded. */
  row: ComparedRow | undefined;
  view: View;
  against: NonNullable<Search["against"]>;
  /** Control that selects what the outputs are compared with. It is shown above the outputs. */
  children: ReactNode;
}) {
  const runsOf = (id: string) => example.runs.filter(({ session_id }) => session_id === id);
  const [baseline] = view.shown;
  const before =
    against === "nothing"
      ? undefined
      : against === "expected"
        ? example.outputs
        : runsOf(baseline?.id ?? "")[0]?.outputs;
  return (
    <div className="grid gap-5">
      <div className="grid grid-cols-2 gap-4 max-sm:grid-cols-1">
        <DetailSection title="Input">
          <Payload title="Input" value={example.inputs} />
        </DetailSection>
        <DetailSection title="Expected">
          <Payload title="Expected" value={example.outputs} />
        </DetailSection>
      </div>
      {example.metadata && (
        <details className="text-table">
          <summary className="cursor-pointer rounded text-text-2">Example metadata</summary>
          <JsonTree value={example.metadata} />
        </details>
      )}
      <div>{children}</div>
      {view.shown.map((session, index) => {
        const runs = runsOf(session.id);
        return (
          <section key={session.id} aria-label={session.name} className="grid min-w-0 gap-3">
            <h3 className="flex items-baseline gap-2 border-line border-b pb-1 font-semibold text-body">
              <span className="min-w-0 truncate">
                <HueDot name={session.name} />
                {session.name}
              </span>
              {index === 0 && <span className="font-normal text-table text-text-3">(baseline)</span>}
              {row?.cells[index]?.is_earlier_version && (
                <span className="font-normal text-table text-text-3">
                  Evaluated with an earlier version of the example
                </span>
              )}
              {runs.length === 0 && <span className="font-normal text-table text-text-3">Not run</span>}
            </h3>
            {runs.map((run, repetition) => (
              <RunCard
                key={run.id}
                view={view}
                run={run}
                repetition={runs.length > 1 ? `Run ${repetition + 1} of ${runs.length}` : undefined}
                baseline={index === 0 ? undefined : runsOf(baseline?.id ?? "")}
                before={against === "baseline" && index === 0 ? undefined : before}
              />
            ))}
          </section>
        );
      })}
    </div>
  );
}
