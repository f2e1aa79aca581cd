import type { StreamedEvent } from "./expected.ts";

// Two executions of one graph differ in what has to differ, and in nothing else. This is all of it.

/** What the server says of a run to the graph. LangGraph passes it on in configs and in metadata. */
const SAID_BY_SERVER = ["run_id", "graph_id", "assistant_id", "user_id", "run_attempt"];

/** Ids that are made anew each time: UUIDs of runs, threads, tasks and checkpoints, and the hashes that interrupts are called by. */
const FRESH_ID = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b/g;

/**
 * The events with every fresh id replaced by the number of its first appearance, so that it still shows which
 * of them are the same; without the moments of `debug`; and without what only the server says.
 */
export function normalise(events: StreamedEvent[]): StreamedEvent[] {
  const seen = new Map<string, string>();
  const numbered = (id: string) => {
    if (!seen.has(id)) seen.set(id, `<id ${seen.size + 1}>`);
    return seen.get(id) as string;
  };
  return events.map(({ event, data }) => {
    const text = JSON.stringify({ event, data: comparable(event.split("|")[0] as string, data) });
    return JSON.parse(text.replaceAll(FRESH_ID, numbered)) as StreamedEvent;
  });
}

function comparable(mode: string, data: unknown): unknown {
  switch (mode) {
    case "messages": {
      const [message, metadata] = data as [unknown, unknown];
      return [clean(message), clean(metadata, "metadata")];
    }
    case "debug": {
      const { timestamp, payload, ...rest } = data as Fields;
      const moment = Number.isNaN(Date.parse(String(timestamp))) ? timestamp : "<moment>";
      return { ...rest, timestamp: moment, payload: withoutUnset(clean(payload) as Fields) };
    }
    case "checkpoints":
      return withoutUnset(clean(data) as Fields);
    default:
      return clean(data);
  }
}

type Fields = Record<string, unknown>;

/** A copy without what only the server says. Keys are sorted: their order means nothing, but ids are numbered in it. */
function clean(value: unknown, key?: string): unknown {
  if (Array.isArray(value)) return value.map((item) => clean(item));
  if (typeof value !== "object" || value === null) return value;
  const ignored = key === "metadata" || key === "configurable" ? SAID_BY_SERVER : [];
  const entries = Object.entries(value)
    .filter(([name]) => !ignored.includes(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, item]) => [name, clean(item, name)]));
}

/** What does not exist may be null or left out in a checkpoint: the contract does not say, and clients read both. */
function withoutUnset({ parent_config, tasks, ...checkpoint }: Fields): Fields {
  const withoutState = ({ state, ...task }: Fields) => (state === null ? task : { ...task, state });
  return {
    ...checkpoint,
    ...(parent_config !== null && parent_config !== undefined && { parent_config }),
    ...(Array.isArray(tasks) && { tasks: (tasks as Fields[]).map(withoutState) }),
  };
}
