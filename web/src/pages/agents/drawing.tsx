import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import type { GraphDrawing as Drawing } from "../../../../src/agent-server/contract/records.ts";
import type { GraphDrawingProps } from "../../ui/graph.tsx";
import { ErrorState, Skeleton } from "../../ui/states.tsx";
import { drawingQuery } from "./queries.ts";

/** Loaded on demand, because the module includes the graph library. */
const GraphDrawing = lazy(() => import("../../ui/graph.tsx"));

const ENDS: Record<string, string> = { __start__: "start", __end__: "end" };

/** Drawing of an assistant's graph. @param xray expands subgraphs */
export function AssistantDrawing({
  assistant_id,
  xray = false,
  ...marks
}: {
  assistant_id: string;
  xray?: boolean;
} & Pick<GraphDrawingProps, "stateOf" | "breakpoints" | "onBreakpoint">) {
  const { data, error, refetch } = useQuery(drawingQuery(assistant_id, xray));
  const drawn = useMemo(() => data && partsOf(data), [data]);
  if (error) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!drawn) return <GraphSkeleton />;
  return (
    <Suspense fallback={<GraphSkeleton />}>
      <GraphDrawing {...drawn} label="Graph nodes and edges" {...marks} />
    </Suspense>
  );
}

const GraphSkeleton = () => (
  <div role="status" aria-label="Loading graph" className="grid justify-items-center gap-8 py-6">
    {["w-16", "w-28", "w-36", "w-20"].map((width) => (
      <Skeleton key={width} className={`h-8 ${width}`} />
    ))}
  </div>
);

const partsOf = ({ nodes, edges }: Drawing) => ({
  nodes: nodes.map(({ id }) => ({ id: String(id), label: ENDS[id] ?? String(id), isEnd: id in ENDS })),
  edges: edges.map(({ source, target, conditional = false, data }) => ({ source, target, conditional, label: data })),
});
