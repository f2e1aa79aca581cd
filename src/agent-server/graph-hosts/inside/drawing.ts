import type { CompiledGraph } from "./loading/load.ts";

/** Nodes and edges of a graph. `xray` opens subgraphs, a number so many levels deep. */
export async function draw(graph: CompiledGraph, xray: boolean | number): Promise<unknown> {
  const drawable = await graph.getGraphAsync({ xray } as never);
  return drawable.toJSON();
}
