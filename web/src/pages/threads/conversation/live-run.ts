import type { ServerEvent } from "../../../api/events.ts";
import { withChunk } from "./merge-chunks.ts";
import { type Message, messagesOf } from "./messages.ts";

export interface RunningTask {
  id: string;
  name: string;
  /** Names of the enclosing subgraphs, outermost first. Empty at the root. */
  subgraphs: readonly string[];
}

/** Data of a run, accumulated from its event stream. */
export interface Live {
  run_id: string;
  /** State after the last step. Undefined before the first `values` event. */
  values: unknown;
  /** Messages that are being streamed, each with the ID of the generating task. */
  writing: readonly { message: Message; task: string }[];
  running: readonly RunningTask[];
  /** Whether the run streams the starts and ends of its tasks. Other clients may start runs without this stream mode. */
  hasTaskEvents: boolean;
  /** Data of the latest `custom` events, newest last. */
  customEvents: readonly unknown[];
  error: { error: string; message: string } | undefined;
}

const MAX_CUSTOM_EVENTS = 50;

export const liveOf = (run_id: string): Live => ({
  run_id,
  values: undefined,
  writing: [],
  running: [],
  hasTaskEvents: false,
  customEvents: [],
  error: undefined,
});

/** Applies an event to the run's data. Returns the same object for events that the page does not show. */
export function withEvent(live: Live, { event, data }: ServerEvent): Live {
  const [mode, ...path] = event.split("|");
  switch (mode) {
    case "values":
      return path.length === 0 ? withValues(live, JSON.parse(data)) : live;
    case "messages": {
      const [chunk, metadata] = JSON.parse(data) as [Message, { langgraph_checkpoint_ns?: string }];
      return withMessage(live, chunk, taskOf(metadata.langgraph_checkpoint_ns?.split("|")[0]), withChunk);
    }
    // Contains all chunks of the message so far. Sent for runs that other clients start with the stream mode `messages`.
    case "messages/partial": {
      const [message] = JSON.parse(data) as Message[];
      return message ? withMessage(live, message, "", (_, whole) => whole) : live;
    }
    case "tasks":
      return withTask(live, JSON.parse(data), path);
    case "custom":
      return { ...live, customEvents: [...live.customEvents.slice(1 - MAX_CUSTOM_EVENTS), JSON.parse(data)] };
    case "error":
      return { ...live, error: JSON.parse(data) };
    case "metadata":
      // The first event of each attempt. A retry repeats the steps that were not stored.
      return { ...live, writing: [], running: [] };
    default:
      return live;
  }
}

/** Extracts the task ID from a namespace part such as `agent:5f67f22f-...`. */
const taskOf = (part: string | undefined): string => part?.slice(part.indexOf(":") + 1) ?? "";

/** Stores a new state, and removes streamed messages that the state contains or whose task has ended. */
function withValues(live: Live, values: unknown): Live {
  // The last `values` event of an interrupted run contains only the interrupt.
  if (Object.keys(values ?? {}).join() === "__interrupt__") return live;
  const known = new Set(messagesOf(values)?.map(({ id }) => id));
  const running_ids = new Set(live.running.map(({ id }) => id));
  const writing = live.writing.filter(
    ({ message, task }) => !known.has(message.id) && (!task || running_ids.has(task)),
  );
  return { ...live, values, writing };
}

function withMessage(
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
  /** Absent in the event for the task's start. */
  result?: unknown;
  error?: unknown;
}

function withTask(live: Live, { id, name, ...ended }: TaskEvent, path: readonly string[]): Live {
  const others = live.running.filter((task) => task.id !== id);
  if ("result" in ended || "error" in ended) return { ...live, running: others, hasTaskEvents: true };
  const subgraphs = path.map((part) => part.slice(0, part.indexOf(":")));
  return { ...live, running: [...others, { id, name, subgraphs }], hasTaskEvents: true };
}
