import type { Tx } from "../../../platform/database/database.ts";
import type { RunStatus } from "../../contract/records.ts";
import { PROTOCOL_PREFIX } from "../../graph-hosts/host.ts";
import { EventReader, type StoredEvent } from "../../storage/event-reader.ts";
import type { RunRow } from "../../storage/schema.ts";

/** A graph of a run, with the graphs that it has called: `AgentTreeNode` of the package `@langchain/protocol`. */
interface AgentTreeNode {
  namespace: string[];
  status: string;
  graph_name: string;
  children: AgentTreeNode[];
}

const STATUSES: Record<RunStatus, string> = {
  pending: "started",
  running: "running",
  success: "completed",
  error: "failed",
  timeout: "failed",
  interrupted: "interrupted",
};

const LIFECYCLE = `${PROTOCOL_PREFIX}lifecycle`;

/** Builds the tree from the lifecycle events of the run's last attempt. A run of the run API has no such events of subgraphs. */
export async function agentTree(read: Tx, run: RunRow): Promise<AgentTreeNode> {
  const nodes = new Map<string, AgentTreeNode>();
  for await (const { event, data } of eventsOf(read, run)) {
    if (event === "metadata") nodes.clear();
    const [method, ...namespace] = event.split("|");
    if (method !== LIFECYCLE) continue;
    const { data: about } = JSON.parse(data) as { data: { event: string; graph_name?: string } };
    const { event: status, graph_name = "" } = about;
    nodes.set(namespace.join("|"), { namespace, status, graph_name, children: [] });
  }
  const root = { namespace: [], status: STATUSES[run.status], graph_name: run.graph_id, children: [] };
  for (const node of nodes.values()) parentOf(node, nodes, root).children.push(node);
  return root;
}

async function* eventsOf(read: Tx, { run_id }: RunRow): AsyncGenerator<StoredEvent> {
  const reader = new EventReader(run_id);
  for (let seen = 0; ; ) {
    const events = await reader.after(read, seen);
    const last = events.at(-1);
    if (!last) return;
    yield* events;
    seen = last.seq;
  }
}

/** The graph with the longest namespace that the node's begins with. */
function parentOf({ namespace }: AgentTreeNode, nodes: Map<string, AgentTreeNode>, root: AgentTreeNode): AgentTreeNode {
  for (let length = namespace.length - 1; length > 0; length--) {
    const parent = nodes.get(namespace.slice(0, length).join("|"));
    if (parent) return parent;
  }
  return root;
}
