import { ChevronDown, ChevronRight, CircleX } from "lucide-react";
import { type KeyboardEvent, memo, useEffect, useRef, useState } from "react";
import { cost, count, duration } from "../../../ui/format.ts";
import { classes, isNarrow, useMedia } from "../../../ui/layout.tsx";
import { useVisibleArea } from "../../../ui/table/visible-area.ts";
import { RunTypeIcon } from "../run-types.tsx";
import type { Axis, TraceNode } from "./trace-tree.ts";

const ROW_PX = 32;
const HEAD_PX = 32;
const INDENT_PX = 14;
/** Deeper levels have the same indent, so that the name stays visible. */
const MAX_INDENTED = 12;

export interface WaterfallProps {
  rows: readonly TraceNode[];
  axis: Axis;
  critical: ReadonlySet<string>;
  /** IDs of the runs that match the search. Undefined without a search. */
  found: ReadonlySet<string> | undefined;
  selected: string | undefined;
  isFolded(node: TraceNode): boolean;
  onFold(node: TraceNode, folded: boolean): void;
  onSelect(id: string): void;
  /** Called when the user presses Enter. Opens the selected run. */
  onOpen(): void;
}

/** The runs of a trace as a tree, with their times on one axis. Only visible rows are rendered. */
export function Waterfall(props: WaterfallProps) {
  const { rows, axis, critical, found, selected, isFolded, onFold, onSelect, onOpen } = props;
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  const { fromRow, toRow } = useVisibleArea(scroller, {
    rows: rows.length,
    rowHeight: ROW_PX,
    edges: undefined,
    pinned: 0,
  });
  const at = rows.findIndex(({ run }) => run.id === selected);
  const narrow = useMedia(isNarrow);
  const hasTokens = !narrow && rows.some(({ run }) => run.total_tokens > 0);
  const hasCost = !narrow && rows.some(({ run }) => run.total_cost !== null);
  const columns = `minmax(150px,1fr) 68px ${hasTokens ? "64px " : ""}${hasCost ? "76px " : ""}minmax(110px,34%)`;
  const current = useRef({ rows, onFold, onSelect });
  current.current = { rows, onFold, onSelect };
  useEffect(() => {
    if (!scroller || at < 0) return;
    const top = at * ROW_PX;
    const lowest = top + ROW_PX + HEAD_PX - scroller.clientHeight;
    scroller.scrollTop = Math.max(lowest, Math.min(top, scroller.scrollTop));
  }, [scroller, at]);
  const onKeyDown = (event: KeyboardEvent) => {
    const target = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    const next = target === undefined ? undefined : rows[Math.min(Math.max(target, 0), rows.length - 1)];
    if (next) onSelect(next.run.id);
    else if (event.key === "Enter" && event.target === event.currentTarget) onOpen();
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={setScroller}
      role="treegrid"
      aria-label="Runs of the trace"
      aria-rowcount={rows.length + 1}
      aria-activedescendant={at >= fromRow && at < toRow ? rowId(selected as string) : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      className="min-h-0 flex-1 overflow-y-auto overflow-x-hidden -outline-offset-2"
    >
      <div role="rowgroup">
        <div
          role="row"
          aria-rowindex={1}
          style={{ gridTemplateColumns: columns, height: HEAD_PX }}
          className="sticky top-0 z-10 grid items-center border-line border-b bg-sunken font-medium text-table text-text-2"
        >
          <Head className="pl-3">Run</Head>
          <Head className="text-right">Latency</Head>
          {hasTokens && <Head className="text-right">Tokens</Head>}
          {hasCost && <Head className="text-right">Cost</Head>}
          <Head className="px-3">
            <span className="flex justify-between font-mono font-normal text-note text-text-3">
              <span>0</span>
              <span>{duration((axis.end - axis.start) / 2)}</span>
              <span>{duration(axis.end - axis.start)}</span>
            </span>
          </Head>
        </div>
      </div>
      <div role="rowgroup" className="relative" style={{ height: rows.length * ROW_PX }}>
        {rows.slice(fromRow, toRow).map((node, index) => (
          <Row
            key={node.run.id}
            node={node}
            index={fromRow + index}
            columns={columns}
            hasTokens={hasTokens}
            hasCost={hasCost}
            axisStart={axis.start}
            axisEnd={axis.end}
            isCritical={critical.has(node.run.id)}
            isFound={found?.has(node.run.id)}
            isSelected={fromRow + index === at}
            isFolded={node.children.length > 0 && isFolded(node)}
            hasSearch={found !== undefined}
            current={current}
          />
        ))}
      </div>
    </div>
  );
}

const Head = ({ className, children }: { className: string; children: React.ReactNode }) => (
  <div role="columnheader" className={className}>
    {children}
  </div>
);

const rowId = (run_id: string) => `run-${run_id}`;

interface RowProps {
  node: TraceNode;
  index: number;
  columns: string;
  hasTokens: boolean;
  hasCost: boolean;
  axisStart: number;
  axisEnd: number;
  isCritical: boolean;
  isFound: boolean | undefined;
  isSelected: boolean;
  isFolded: boolean;
  hasSearch: boolean;
  /** Ref to the latest callbacks, so that a new callback does not re-render all rows. */
  current: { current: Pick<WaterfallProps, "onFold" | "onSelect"> };
}

const Row = memo(function Row(props: RowProps) {
  const { node, index, columns, hasTokens, hasCost, isCritical, isFound, isSelected, isFolded, hasSearch, current } =
    props;
  const { run, depth, children } = node;
  const end = node.end ?? props.axisEnd;
  const Chevron = isFolded ? ChevronRight : ChevronDown;
  return (
    <div
      id={rowId(run.id)}
      role="row"
      aria-rowindex={index + 2}
      aria-level={depth + 1}
      aria-selected={isSelected}
      aria-expanded={children.length > 0 ? !isFolded || hasSearch : undefined}
      onClick={() => current.current.onSelect(run.id)}
      style={{ gridTemplateColumns: columns, height: ROW_PX, transform: `translateY(${index * ROW_PX}px)` }}
      className={classes(
        "absolute inset-x-0 top-0 grid cursor-pointer items-center border-line border-b text-table",
        isSelected ? "bg-selected" : "hover:bg-hover",
      )}
    >
      <div
        role="gridcell"
        className="flex min-w-0 items-center gap-1.5 pl-1.5"
        style={{ marginLeft: Math.min(depth, MAX_INDENTED) * INDENT_PX }}
      >
        {children.length > 0 && !hasSearch ? (
          <button
            type="button"
            tabIndex={-1}
            aria-label={`${isFolded ? "Expand" : "Collapse"} ${run.name}`}
            className="flex size-5 shrink-0 items-center justify-center rounded text-text-3 hover:bg-hover hover:text-text"
            onClick={(event) => {
              event.stopPropagation();
              current.current.onFold(node, !isFolded);
            }}
          >
            <Chevron size={14} aria-hidden />
          </button>
        ) : (
          <span className="w-5 shrink-0" />
        )}
        <RunTypeIcon run_type={run.run_type} />
        <span
          className={classes(
            "min-w-0 truncate",
            isCritical && "font-medium",
            isFound === false && "text-text-3",
            run.status === "error" && "text-error",
          )}
          title={nameOf(node)}
        >
          {run.name || "Unnamed run"}
        </span>
        {run.status === "error" && <CircleX size={13} className="shrink-0 text-error" aria-label="Error" />}
        {node.isOrphan && (
          <span
            className="shrink-0 rounded border border-line px-1 text-note text-text-3"
            title="The parent run has not been received."
          >
            no parent
          </span>
        )}
        {isFolded && !hasSearch && <span className="shrink-0 text-note text-text-3">+{count(children.length)}</span>}
      </div>
      <div role="gridcell" className="text-right font-mono">
        {node.end === undefined ? (
          <span className="text-running">pending</span>
        ) : (
          duration(Math.max(0, end - node.start))
        )}
      </div>
      {hasTokens && (
        <div role="gridcell" className="text-right font-mono text-text-2">
          {run.total_tokens > 0 && count(run.total_tokens)}
        </div>
      )}
      {hasCost && (
        <div role="gridcell" className="text-right font-mono text-text-2">
          {run.total_cost !== null && cost(run.total_cost)}
        </div>
      )}
      <div role="gridcell" className="px-3">
        <Bar {...props} end={end} />
      </div>
    </div>
  );
});

const nameOf = ({ run }: TraceNode): string =>
  [run.name, run.langgraph_node && run.langgraph_node !== run.name && `node ${run.langgraph_node}`, run.error]
    .filter(Boolean)
    .join("\n");

/** Bar for the time range of a run: thick and coloured on the critical path, red if the run failed, with a line at the first token. */
function Bar({ node, axisStart, axisEnd, isCritical, end }: RowProps & { end: number }) {
  const length = axisEnd - axisStart;
  const percent = (from: number, to: number) => `${(Math.max(0, Math.min(to, axisEnd) - from) / length) * 100}%`;
  const { run, start, firstToken } = node;
  const color = run.status === "error" ? "bg-error" : isCritical ? "bg-accent" : "bg-text-3";
  const after = duration(start - axisStart);
  return (
    <div className="relative h-3.5" title={`Starts after ${after}${isCritical ? ". On the critical path." : ""}`}>
      <span className="sr-only">{isCritical && "On the critical path"}</span>
      <span
        data-bar
        className={classes(
          "absolute min-w-0.5 rounded-sm",
          isCritical ? "inset-y-0.5" : "inset-y-1",
          color,
          node.end === undefined && "animate-pulse-slow",
        )}
        style={{ left: percent(axisStart, start), width: percent(start, end) }}
      />
      {firstToken !== undefined && firstToken >= start && (
        <span
          title={`First token after ${duration(firstToken - start)}`}
          className="absolute inset-y-0 w-0.5 bg-text"
          style={{ left: percent(axisStart, firstToken) }}
        />
      )}
    </div>
  );
}
