import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, ChevronsDownUp, ChevronsUpDown } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useKeys } from "../../../frame/keys.ts";
import { Button } from "../../../ui/button.tsx";
import { Input, leaveOnEscape } from "../../../ui/form/field.tsx";
import { useDebounced } from "../../../ui/form/use-debounced.ts";
import { count } from "../../../ui/format.ts";
import { classes, useMedia } from "../../../ui/layout.tsx";
import { EmptyState } from "../../../ui/states.tsx";
import type { TraceSearch } from "../page.ts";
import { type LoadedTrace, type TraceSource, traceSearchQuery } from "../queries.ts";
import { RunPanel } from "../run/run-panel.tsx";
import {
  axisOf,
  criticalPathOf,
  isFoldedAtFirst,
  isInternal,
  type TraceNode,
  treeOf,
  visibleTree,
} from "./trace-tree.ts";
import { Waterfall } from "./waterfall.tsx";

/** While a run is pending, its bar grows at this interval. */
const GROWTH_MS = 500;

/** Media query for screens on which the tree and the selected run do not fit side by side. */
const HAS_ONE_COLUMN = "(max-width: 899px)";

/** The tree of a trace on the left, and the selected run on the right. */
export function TraceView({
  source,
  trace,
  search,
  onChange,
}: {
  source: TraceSource;
  trace: LoadedTrace;
  search: TraceSearch;
  onChange(changed: TraceSearch): void;
}) {
  const hasOneColumn = useMedia(HAS_ONE_COLUMN);
  const nodes = useMemo(() => treeOf(trace.runs), [trace.runs]);
  const now = useNow(useMemo(() => isGrowing(nodes), [nodes]));
  const axis = useMemo(() => axisOf(nodes, now), [nodes, now]);
  const critical = useMemo(() => criticalPathOf(nodes, axis), [nodes, axis]);
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const isFolded = (node: TraceNode) => toggled.get(node.run.id) ?? isFoldedAtFirst(node, nodes.length);
  const q = search.q ?? "";
  const { data: also } = useQuery(traceSearchQuery(source, q));
  // biome-ignore lint/correctness/useExhaustiveDependencies: `isFolded` depends only on `toggled` and `nodes`
  const { rows, found } = useMemo(() => visibleTree(nodes, { isFolded, search: q, also }), [nodes, toggled, q, also]);
  const panel = useRef<HTMLElement>(null);
  const searchBox = useRef<HTMLInputElement>(null);
  const [text, setText] = useDebounced(q, (written) => onChange({ q: written.trim() || undefined }));

  const selected = search.run ?? nodes[0]?.run.id;
  const node = nodes.find(({ run }) => run.id === selected);
  const isPanelOnly = hasOneColumn && search.run !== undefined;
  const select = (run: string) => onChange({ run });
  const fold = (target: TraceNode, folded: boolean) =>
    setToggled((before) => new Map(before).set(target.run.id, folded));
  const foldAll = (folded: boolean) =>
    setToggled(new Map(nodes.flatMap(({ run, depth }) => (depth > 0 || !folded ? [[run.id, folded]] : []))));
  const move = (by: number) => {
    const at = rows.findIndex(({ run }) => run.id === selected);
    const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (next) select(next.run.id);
  };
  /** Folds the selected run. Selects the parent instead if the run is folded or has no children, or during a search. */
  const foldSelected = () => {
    if (!node) return;
    if (node.children.length > 0 && !isFolded(node) && !found) fold(node, true);
    else if (node.parent) select(node.parent.run.id);
  };
  const unfoldSelected = () => {
    if (!node || node.children.length === 0) return;
    if (isFolded(node) && !found) fold(node, false);
    else move(1);
  };
  useKeys({
    j: { does: "Next run", run: () => move(1) },
    k: { does: "Previous run", run: () => move(-1) },
    ArrowLeft: { does: "Collapse the run, or go to its parent", run: foldSelected },
    ArrowRight: { does: "Expand the run, or go to its first child", run: unfoldSelected },
    Enter: { does: "Go to the details of the run", run: () => panel.current?.focus() },
    "/": { does: "Search in the trace", run: () => searchBox.current?.focus() },
  });
  useUnfolded(node, setToggled);

  return (
    <div className="flex min-h-0 flex-1">
      <section
        aria-label="Tree"
        className={classes(
          "flex min-h-0 min-w-0 flex-col",
          hasOneColumn ? "flex-1" : "w-[54%]",
          isPanelOnly && "hidden",
        )}
      >
        <div className="flex items-center gap-2 px-3 py-2">
          <Input
            ref={searchBox}
            type="search"
            aria-label="Search in the trace"
            placeholder="Search names, inputs, outputs"
            className="!w-56 min-w-0"
            value={text}
            onChange={({ target }) => setText(target.value)}
            onKeyDown={leaveOnEscape}
          />
          <span role="status" className="min-w-0 truncate text-table text-text-3">
            {found
              ? `${count(found.size)} of ${count(nodes.length)} runs`
              : runsText(nodes.filter((each) => !isInternal(each)).length)}
          </span>
          <span className="ml-auto flex">
            <Button
              look="quiet"
              small
              square
              aria-label="Collapse all"
              title="Collapse all"
              onClick={() => foldAll(true)}
            >
              <ChevronsDownUp size={14} />
            </Button>
            <Button look="quiet" small square aria-label="Expand all" title="Expand all" onClick={() => foldAll(false)}>
              <ChevronsUpDown size={14} />
            </Button>
          </span>
        </div>
        {rows.length === 0 ? (
          <EmptyState title="No runs match">
            The search covers names, types, nodes, tags, errors, statuses, metadata, inputs and outputs.
          </EmptyState>
        ) : (
          <Waterfall
            rows={rows}
            axis={axis}
            critical={critical}
            found={found}
            selected={selected}
            isFolded={isFolded}
            onFold={fold}
            onSelect={select}
            onOpen={() => panel.current?.focus()}
          />
        )}
        <p className="flex flex-wrap gap-x-4 border-line border-t px-3 py-1.5 text-note text-text-3">
          <Legend className="h-2 w-4 rounded-sm bg-accent" label="critical path" />
          <Legend className="h-3 w-0.5 bg-text" label="first token" />
          <Legend className="h-2 w-4 rounded-sm bg-error" label="error" />
        </p>
      </section>
      {(!hasOneColumn || isPanelOnly) && (
        <section
          ref={panel}
          aria-label="Selected run"
          tabIndex={-1}
          // In the panel, the arrow keys scroll wide values and do not move the selection.
          onKeyDown={(event) => event.key.startsWith("Arrow") && event.stopPropagation()}
          className={classes(
            "flex min-h-0 min-w-0 flex-1 flex-col outline-none",
            !hasOneColumn && "border-line border-l",
          )}
        >
          {isPanelOnly && (
            <Button
              look="quiet"
              small
              className="mx-2 mt-2 self-start"
              onClick={() => onChange({ run: undefined, tab: undefined })}
            >
              <ArrowLeft size={14} aria-hidden /> Tree
            </Button>
          )}
          {node ? (
            <RunPanel
              key={node.run.id}
              source={source}
              node={node}
              trace={trace}
              tab={search.tab ?? "io"}
              onTab={(tab) => onChange({ tab: tab === "io" ? undefined : tab })}
            />
          ) : (
            <EmptyState title="Run not found">The trace does not contain this run.</EmptyState>
          )}
        </section>
      )}
    </div>
  );
}

/** Unfolds the ancestors of a newly selected run, for example of a run in the URL. The user can fold them again. */
function useUnfolded(
  selected: TraceNode | undefined,
  setToggled: (change: (before: ReadonlyMap<string, boolean>) => ReadonlyMap<string, boolean>) => void,
): void {
  const last = useRef<string>(undefined);
  useEffect(() => {
    if (!selected || last.current === selected.run.id) return;
    last.current = selected.run.id;
    const above: [string, boolean][] = [];
    for (let at = selected.parent; at; at = at.parent) above.push([at.run.id, false]);
    setToggled((before) => (above.every(([id]) => before.get(id) === false) ? before : new Map([...before, ...above])));
  }, [selected, setToggled]);
}

const runsText = (runs: number): string => (runs === 1 ? "1 run" : `${count(runs)} runs`);

const Legend = ({ className, label }: { className: string; label: string }) => (
  <span className="inline-flex items-center gap-1.5">
    <span className={className} /> {label}
  </span>
);

function isGrowing(nodes: readonly TraceNode[]): boolean {
  const now = Date.now();
  return nodes.some(({ end }) => end === undefined) && axisOf(nodes, now).end === now;
}

/** The current time, which changes only while the axis grows. */
function useNow(isGrowing: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isGrowing) return;
    const timer = setInterval(() => setNow(Date.now()), GROWTH_MS);
    return () => clearInterval(timer);
  }, [isGrowing]);
  return now;
}
