import { Graph, layout } from "@dagrejs/dagre";

export interface GraphNode {
  id: string;
  label: string;
  /** Whether the node is the graph's start or end, which is drawn smaller. */
  isEnd: boolean;
}

export interface GraphEdge {
  source: string;
  target: string;
  /** Whether the edge is conditional. Conditional edges are drawn dashed. */
  conditional: boolean;
  label?: string;
}

/** An edge with its SVG path and its label's position. */
export interface PlacedEdge extends GraphEdge {
  key: string;
  path: string;
  middle: Point;
}

/** Positions in pixels. A node's position is its centre. */
interface Layout {
  height: number;
  nodes: (GraphNode & { x: number; y: number; width: number; height: number })[];
  edges: PlacedEdge[];
}

interface Point {
  x: number;
  y: number;
}

/** Average width of a letter in Inter at 13 px, the font of the labels. */
const LETTER_PX = 7.4;
const MARGIN_PX = 12;
const NODE_HEIGHT_PX = 34;
const END_HEIGHT_PX = 24;

/** Arranges nodes in layers from top to bottom with few edge crossings (Sugiyama method, computed by dagre). */
export function layoutOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Layout {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 36, ranksep: 44, edgesep: 18, marginx: MARGIN_PX, marginy: MARGIN_PX });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes)
    graph.setNode(node.id, {
      width: Math.max(node.label.length * LETTER_PX + (node.isEnd ? 20 : 32), 56),
      height: node.isEnd ? END_HEIGHT_PX : NODE_HEIGHT_PX,
    });
  edges.forEach((edge, index) => {
    graph.setEdge(edge.source, edge.target, { ...sizeOf(edge.label) }, String(index));
  });
  layout(graph);
  const placed = nodes.map((node) => {
    const { x, y, width, height } = graph.node(node.id) as { x: number; y: number; width: number; height: number };
    return { ...node, x, y, width, height };
  });
  const drawn = edges.map((edge, index) => {
    const { points } = graph.edge(edge.source, edge.target, String(index)) as { points: Point[] };
    return { ...edge, key: String(index), path: pathOf(points), middle: points[points.length >> 1] as Point };
  });
  return { height: (graph.graph() as { height?: number }).height ?? 0, nodes: placed, edges: drawn };
}

const sizeOf = (label: string | undefined) =>
  label ? { width: label.length * LETTER_PX, height: 18, labelpos: "c" as const } : {};

/** Returns a smooth SVG path from the first to the last point. The other points are control points of curves that meet midway. */
function pathOf(points: readonly Point[]): string {
  const [first, ...others] = points as [Point, ...Point[]];
  const last = others.at(-1) ?? first;
  const curves = others.slice(0, -1).map((point, index) => {
    const next = others[index + 1] as Point;
    const isLast = index === others.length - 2;
    const end = isLast ? last : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    return `Q${point.x} ${point.y} ${end.x} ${end.y}`;
  });
  return `M${first.x} ${first.y}${curves.join("") || `L${last.x} ${last.y}`}`;
}
