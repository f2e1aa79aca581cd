import { useMemo } from "react";
import { classes } from "./classes.ts";
import { type GraphEdge, type GraphNode, type Layout, layoutOf } from "./graph-layout.ts";

/** What a node is doing: `running` pulses, `next` is where it would go on. */
export type NodeState = "running" | "next";

/**
 * Nodes and edges as a drawing of layers, as wide as its place at most. Dashed edges are taken only sometimes.
 *
 * @param label what a screen reader says of it, before the nodes and where they lead
 */
export function GraphDrawing({
  nodes,
  edges,
  label,
  stateOf = () => undefined,
}: {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
  label: string;
  stateOf?: (id: string) => NodeState | undefined;
}) {
  const drawn = useMemo(() => layoutOf(nodes, edges), [nodes, edges]);
  return (
    <figure className="m-0">
      <svg
        role="img"
        aria-label={label}
        viewBox={`${drawn.left} 0 ${drawn.width} ${drawn.height}`}
        style={{ width: drawn.width, maxWidth: "100%" }}
        className="mx-auto block h-auto"
      >
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8Z" className="fill-text-3" />
          </marker>
        </defs>
        {drawn.edges.map((edge) => (
          <g key={edge.key}>
            <path
              d={edge.path}
              fill="none"
              markerEnd="url(#arrow)"
              strokeDasharray={edge.conditional ? "4 4" : undefined}
              className="stroke-text-3"
              strokeWidth={1.25}
            />
            {edge.label && (
              <text x={edge.middle.x} y={edge.middle.y} textAnchor="middle" className="fill-text-2 text-table">
                {edge.label}
              </text>
            )}
          </g>
        ))}
        {drawn.nodes.map((node) => (
          <Node key={node.id} node={node} state={stateOf(node.id)} />
        ))}
      </svg>
      <figcaption className="sr-only">
        <ul>
          {nodes.map(({ id, label: name }) => (
            <li key={id}>
              {name}
              {stateOf(id) === "running" && ", running"}
              {stateOf(id) === "next" && ", next"}
              {leadingTo(id, nodes, edges)}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

function leadingTo(id: string, nodes: readonly GraphNode[], edges: readonly GraphEdge[]): string {
  const targets = edges
    .filter(({ source }) => source === id)
    .map(({ target }) => nodes.find((node) => node.id === target)?.label ?? target);
  return targets.length === 0 ? "" : `, leads to ${targets.join(", ")}`;
}

const LOOKS = {
  running: { box: "fill-selected stroke-accent-text", text: "fill-accent-text font-semibold" },
  next: { box: "fill-bg stroke-interrupted", text: "fill-interrupted font-semibold" },
  still: { box: "fill-raised stroke-line-strong", text: "fill-text" },
  end: { box: "fill-sunken stroke-line", text: "fill-text-3" },
} as const;

function Node({ node, state }: { node: Layout["nodes"][number]; state: NodeState | undefined }) {
  const look = LOOKS[state ?? (node.isEnd ? "end" : "still")];
  const { x, y, width, height } = node;
  return (
    <g data-node={node.id} data-state={state}>
      <rect
        x={x - width / 2}
        y={y - height / 2}
        width={width}
        height={height}
        rx={node.isEnd ? height / 2 : 8}
        strokeWidth={state ? 2 : 1}
        className={classes(look.box, state === "running" && "animate-pulse-slow")}
      />
      <text x={x} y={y} dy="0.35em" textAnchor="middle" className={classes("text-table", look.text)}>
        {node.label}
      </text>
    </g>
  );
}
