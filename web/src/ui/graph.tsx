import "@xyflow/react/dist/base.css";
import {
  BaseEdge,
  ControlButton,
  Controls,
  type Edge,
  EdgeLabelRenderer,
  type EdgeProps,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
  useReactFlow,
  useStore,
} from "@xyflow/react";
import { CirclePause, Maximize2, Minimize2 } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { type GraphEdge, type GraphNode, layoutOf, type PlacedEdge } from "./graph-layout.ts";
import { classes } from "./layout.tsx";

/** `running` for a node that is running, `next` for a node that runs when the thread continues. */
export type NodeState = "running" | "next";

export interface GraphDrawingProps {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
  label: string;
  stateOf?: (id: string) => NodeState | undefined;
  /** Nodes before which runs pause. */
  breakpoints?: readonly string[];
  /** Sets or removes a breakpoint. Without it, nodes cannot be clicked. */
  onBreakpoint?: (id: string) => void;
}

type DrawnNode = Node<
  GraphNode & {
    state: NodeState | undefined;
    hasBreakpoint: boolean;
    onClick: (() => void) | undefined;
  } & Record<string, unknown>,
  "graph"
>;
type DrawnEdge = Edge<PlacedEdge & Record<string, unknown>, "graph">;

const MIN_HEIGHT_PX = 160;

/** A graph with zoom, pan and full screen. Conditional edges are dashed. A visually hidden list describes nodes and edges for screen readers. */
export default function GraphDrawing({
  nodes,
  edges,
  label,
  stateOf = () => undefined,
  breakpoints = [],
  onBreakpoint,
}: GraphDrawingProps) {
  const layout = useMemo(() => layoutOf(nodes, edges), [nodes, edges]);
  const [frame, setFrame] = useState<HTMLElement | null>(null);
  const drawnEdges = useMemo(() => layout.edges.map(drawnEdge), [layout]);
  const drawnNodes = layout.nodes.map(
    ({ x, y, width, height, ...node }): DrawnNode => ({
      id: node.id,
      type: "graph",
      position: { x: x - width / 2, y: y - height / 2 },
      width,
      height,
      data: {
        ...node,
        state: stateOf(node.id),
        hasBreakpoint: breakpoints.includes(node.id),
        onClick: onBreakpoint && !node.isEnd ? () => onBreakpoint(node.id) : undefined,
      },
    }),
  );
  return (
    <figure className="m-0">
      <div
        ref={setFrame}
        className="bg-bg [&:fullscreen]:h-full!"
        style={{ height: `min(${Math.max(layout.height, MIN_HEIGHT_PX)}px, 70vh)` }}
      >
        <ReactFlow
          aria-label={label}
          nodes={drawnNodes}
          edges={drawnEdges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          fitView
          fitViewOptions={FIT}
          minZoom={0.2}
          maxZoom={2}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          zoomOnScroll={false}
          preventScrolling={false}
          disableKeyboardA11y
        >
          <Controls showInteractive={false} fitViewOptions={FIT}>
            {frame && document.fullscreenEnabled && <FullScreenButton frame={frame} />}
          </Controls>
        </ReactFlow>
      </div>
      <figcaption className="sr-only">
        <ul>
          {nodes.map(({ id, label: name }) => (
            <li key={id}>
              {name}
              {stateOf(id) === "running" && ", running"}
              {stateOf(id) === "next" && ", next"}
              {breakpoints.includes(id) && ", breakpoint"}
              {targetsText(id, nodes, edges)}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

const FIT = { maxZoom: 1, padding: 0.05 };

const FIT_LARGE = { maxZoom: 2, padding: 0.05 };

function FullScreenButton({ frame }: { frame: HTMLElement }) {
  const { fitView } = useReactFlow();
  const height = useStore((store) => store.height);
  const [isFull, setFull] = useState(false);
  useEffect(() => {
    const follow = () => setFull(document.fullscreenElement === frame);
    frame.addEventListener("fullscreenchange", follow);
    return () => frame.removeEventListener("fullscreenchange", follow);
  }, [frame]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the drawing has its new size after the event
  useEffect(() => {
    void fitView(isFull ? FIT_LARGE : FIT);
  }, [fitView, isFull, height]);
  const name = isFull ? "Exit full screen" : "Full screen";
  const toggle = () => (isFull ? document.exitFullscreen() : frame.requestFullscreen());
  return (
    <ControlButton title={name} aria-label={name} onClick={() => void toggle()}>
      {isFull ? <Minimize2 aria-hidden className="fill-none!" /> : <Maximize2 aria-hidden className="fill-none!" />}
    </ControlButton>
  );
}

function targetsText(id: string, nodes: readonly GraphNode[], edges: readonly GraphEdge[]): string {
  const targets = edges
    .filter(({ source }) => source === id)
    .map(({ target }) => nodes.find((node) => node.id === target)?.label ?? target);
  return targets.length === 0 ? "" : `, leads to ${targets.join(", ")}`;
}

const LOOKS = {
  running: "animate-pulse-slow border-2 border-accent-text bg-selected font-semibold text-accent-text",
  next: "border-2 border-interrupted bg-bg font-semibold text-interrupted",
  plain: "border border-line-strong bg-raised text-text",
  end: "border border-line bg-sunken text-text-3",
} as const;

function NodeBox({ data: { id, label, isEnd, state, hasBreakpoint, onClick } }: NodeProps<DrawnNode>) {
  return (
    <div
      data-node={id}
      data-state={state}
      className={classes(
        "flex size-full items-center justify-center whitespace-nowrap text-table",
        isEnd ? "rounded-full" : "rounded-lg",
        LOOKS[state ?? (isEnd ? "end" : "plain")],
      )}
    >
      <Handle type="target" position={Position.Top} className="invisible" />
      {onClick ? (
        <button
          type="button"
          aria-pressed={hasBreakpoint}
          aria-label={`Pause before ${label}`}
          title={hasBreakpoint ? "Remove the breakpoint" : `Pause before ${label}`}
          onClick={onClick}
          className="nopan pointer-events-auto flex size-full items-center justify-center gap-1.5 rounded-lg hover:text-accent-text"
        >
          {hasBreakpoint && <CirclePause size={14} aria-hidden className="text-interrupted" />}
          {label}
        </button>
      ) : (
        label
      )}
      <Handle type="source" position={Position.Bottom} className="invisible" />
    </div>
  );
}

const drawnEdge = (edge: PlacedEdge): DrawnEdge => ({
  id: edge.key,
  type: "graph",
  source: edge.source,
  target: edge.target,
  data: { ...edge },
  markerEnd: { type: MarkerType.ArrowClosed, color: "var(--text-3)" },
});

function EdgePath({ id, data, markerEnd }: EdgeProps<DrawnEdge>) {
  if (!data) return null;
  const { path, label, conditional, middle } = data;
  return (
    <>
      <BaseEdge
        id={id}
        path={path}
        markerEnd={markerEnd}
        style={{ stroke: "var(--text-3)", strokeWidth: 1.25, strokeDasharray: conditional ? "4 4" : undefined }}
      />
      {label && (
        <EdgeLabelRenderer>
          <span
            className="absolute bg-bg px-1 text-table text-text-2"
            style={{ transform: `translate(-50%, -50%) translate(${middle.x}px, ${middle.y}px)` }}
          >
            {label}
          </span>
        </EdgeLabelRenderer>
      )}
    </>
  );
}

const NODE_TYPES = { graph: NodeBox };
const EDGE_TYPES = { graph: EdgePath };
