import type { ServerEvent } from "../../api/events.ts";
import { withChunk } from "./merge-chunks.ts";
import { type Message, messagesOf } from "./messages.ts";

/** A node that works. */
export interface RunningTask {
  id: string;
  name: string;
  /** The subgraphs that it is in, from the outside in; empty at the root. */
  inside: readonly string[];
  since_ms: number;
}

/** A run as its stream has told it so far. */
export interface Live {
  run_id: string;
  /** The state after the last step; undefined before the first is told. */
  values: unknown;
  /** Messages that are being written, each with the task that writes it. */
  writing: readonly { message: Message; task: string }[];
  running: readonly RunningTask[];
  /** What nodes told by themselves, the newest last. */
  notes: readonly unknown[];
  error: { error: string; message: string } | undefined;
}

/** How many notes are kept. */
const MAX_NOTES = 50;

export const liveOf = (run_id: string): Live => ({
  run_id,
  values: undefined,
  writing: [],
  running: [],
  notes: [],
  error: undefined,
});

/** What is known after one more event. Whatever is not shown changes nothing. */
export function withEvent(live: Live, { event, data }: ServerEvent, now_ms: number): Live {
  const [mode, ...path] = event.split("|");
  switch (mode) {
    case "values":
      return path.length === 0 ? withValues(live, JSON.parse(data)) : live;
    case "messages": {
      const [chunk, metadata] = JSON.parse(data) as [Message, { langgraph_checkpoint_ns?: string }];
      return withWritten(live, chunk, taskOf(metadata.langgraph_checkpoint_ns?.split("|")[0]), withChunk);
    }
    // Of runs that others started with the mode `messages`: the whole message so far.
    case "messages/partial": {
      const [message] = JSON.parse(data) as Message[];
      return message ? withWritten(live, message, "", (_, whole) => whole) : live;
    }
    case "tasks":
      return withTask(live, JSON.parse(data), path, now_ms);
    case "custom":
      return { ...live, notes: [...live.notes.slice(1 - MAX_NOTES), JSON.parse(data)] };
    case "error":
      return { ...live, error: JSON.parse(data) };
    case "metadata":
      // A retry tells steps again that had not been stored.
      return { ...live, writing: [], running: [] };
    default:
      return live;
  }
}

/** `agent:5f67f22f-...`, a part of a namespace, is the node and the id of its task. */
const taskOf = (part: string | undefined): string => part?.slice(part.indexOf(":") + 1) ?? "";

/** A message that is part of the state is not being written any more, nor is one of a node that is done. */
function withValues(live: Live, values: unknown): Live {
  // What comes last when a run pauses is the question alone.
  if (Object.keys(values ?? {}).join() === "__interrupt__") return live;
  const known = new Set(messagesOf(values)?.map(({ id }) => id));
  const working = new Set(live.running.map(({ id }) => id));
  const writing = live.writing.filter(({ message, task }) => !known.has(message.id) && (!task || working.has(task)));
  return { ...live, values, writing };
}

function withWritten(
  live: Live,
  piece: Message,
  task: string,
  join: (before: Message | undefined, piece: Message) => Message,
): Live {
  const at = live.writing.findIndex(({ message }) => message.id === piece.id);
  if (at === -1) return { ...live, writing: [...live.writing, { message: join(undefined, piece), task }] };
  const writing = live.writing.map((each, i) => (i === at ? { message: join(each.message, piece), task } : each));
  return { ...live, writing };
}

interface TaskEvent {
  id: string;
  name: string;
  /** Where it is missing, the task has begun. */
  result?: unknown;
  error?: unknown;
}

function withTask(live: Live, { id, name, ...ended }: TaskEvent, path: readonly string[], now_ms: number): Live {
  const others = live.running.filter((task) => task.id !== id);
  if ("result" in ended || "error" in ended) return { ...live, running: others };
  const inside = path.map((part) => part.slice(0, part.indexOf(":")));
  return { ...live, running: [...others, { id, name, inside, since_ms: now_ms }] };
}
