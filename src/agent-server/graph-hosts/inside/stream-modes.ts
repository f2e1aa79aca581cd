import { toCheckpointKey } from "./state.ts";
import { isMessage, type Message, toWire } from "./wire.ts";

export type Emit = (event: string, data: string) => void;

/** LangGraph modes by stream mode of the API, where they differ. */
const SOURCES: Record<string, string[]> = {
  "messages-tuple": ["messages"],
  // `messages` supplies tokens, and `values` supplies messages that no model has streamed.
  messages: ["messages", "values"],
  events: [],
};

/** Returns the LangGraph modes for the requested modes. `values` is always included: its last event is the run's output. */
export function sourceModes(requested: readonly string[]): string[] {
  return [...new Set(["values", ...requested.flatMap((mode) => SOURCES[mode] ?? [mode])])];
}

/** The state of a run's graph according to its stream. */
export class StreamedState {
  /** The last complete state of the root graph. */
  lastValues: unknown;
  /** The last complete state as JSON text, if it was sent as an event. */
  lastValuesText: string | undefined;
  /** The interrupts of the root graph: empty for a breakpoint, undefined if it was not interrupted. */
  interrupts: unknown[] | undefined;

  /** @param chunk a chunk of the mode `values` of the root graph */
  record(chunk: unknown): void {
    if (typeof chunk === "object" && chunk !== null && "__interrupt__" in chunk) {
      this.interrupts = [...(this.interrupts ?? []), ...(chunk.__interrupt__ as unknown[])];
    } else {
      this.lastValues = chunk;
      this.lastValuesText = undefined;
    }
  }
}

/** Converts the stream of a graph to the requested events, and records the state of the graph. */
export class StreamTranslator {
  readonly #requested: ReadonlySet<string>;
  readonly #emit: Emit;
  readonly #state: StreamedState;
  readonly #messages: MessageEvents;

  constructor(requested: readonly string[], emit: Emit, state: StreamedState) {
    this.#requested = new Set(requested);
    this.#emit = emit;
    this.#state = state;
    this.#messages = new MessageEvents(emit);
  }

  take(namespace: readonly string[], mode: string, chunk: unknown): void {
    if (mode === "values" && namespace.length === 0) this.#state.record(chunk);
    if (this.#requested.has("messages")) {
      if (mode === "messages") this.#messages.takeToken(chunk as [unknown, Record<string, unknown>]);
      if (mode === "values") this.#messages.takeValues(chunk);
    }
    if (mode === "messages") {
      if (this.#requested.has("messages-tuple")) this.#emit(eventName("messages", namespace), toWire(chunk));
    } else if (this.#requested.has(mode)) {
      const text = toWire(CONVERSIONS[mode]?.(chunk) ?? chunk);
      if (chunk === this.#state.lastValues) this.#state.lastValuesText = text;
      this.#emit(eventName(mode, namespace), text);
    }
  }

  takeEvent(event: { tags?: string[] }): void {
    if (this.#requested.has("events") && !event.tags?.includes("langsmith:hidden")) this.#emit("events", toWire(event));
  }
}

export const eventName = (event: string, namespace: readonly string[]) => [event, ...namespace].join("|");

/** The API returns the configs of these modes as references to checkpoints, without internal fields. */
const CONVERSIONS: Record<string, (chunk: unknown) => unknown> = {
  debug: (chunk) => {
    const debug = chunk as { type: string; payload: Record<string, unknown> };
    const toPublic = debug.type === "checkpoint" ? toPublicCheckpoint : toPublicTask;
    return { ...debug, payload: toPublic(debug.payload) };
  },
  checkpoints: (chunk) => toPublicCheckpoint(chunk as Record<string, unknown>),
  tasks: (chunk) => toPublicTask(chunk as Record<string, unknown>),
};

type Config = { configurable?: Record<string, unknown>; [field: string]: unknown };

function toPublicCheckpoint({ config, parentConfig, tasks, ...payload }: Record<string, unknown>) {
  return {
    ...payload,
    config: publicConfig(config as Config | undefined),
    parent_config: publicConfig(parentConfig as Config | undefined),
    checkpoint: config ? toCheckpointKey(config as Config) : null,
    parent_checkpoint: parentConfig ? toCheckpointKey(parentConfig as Config) : null,
    tasks: ((tasks as Record<string, unknown>[] | undefined) ?? []).map(toPublicTask),
  };
}

export function toPublicTask({ state, ...task }: Record<string, unknown>): Record<string, unknown> {
  if (state === undefined) return task;
  return { ...task, state: null, checkpoint: toCheckpointKey(state as Config) };
}

/** Fields of a config that contain internal objects of LangGraph. */
const PRIVATE_FIELDS = new Set(["callbacks", "signal", "store", "writer", "interrupt", "control", "serverInfo"]);

function publicConfig(config: Config | undefined): Config | null {
  if (!config) return null;
  const fields = Object.entries(config).filter(([name]) => !PRIVATE_FIELDS.has(name));
  const configurable = Object.entries(config.configurable ?? {}).filter(
    ([key]) => !key.startsWith("__") && !key.startsWith("langgraph_auth_"),
  );
  return { ...Object.fromEntries(fields), configurable: Object.fromEntries(configurable) };
}

/** A part of a streamed message. Chunks can be concatenated. */
interface MessageChunk extends Message {
  concat(next: MessageChunk): MessageChunk;
}

const isChunk = (value: unknown): value is MessageChunk => isMessage(value) && typeof value.concat === "function";

/** Creates the events of the mode `messages`: partial messages for tokens, and each complete message once, when the state contains it. */
class MessageEvents {
  readonly #emit: Emit;
  readonly #partial = new Map<string, MessageChunk>();
  readonly #complete = new Set<string>();

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  takeToken([chunk, metadata]: [unknown, Record<string, unknown>]): void {
    // A node may also return a chunk, but only chunks from a model have `ls_model_type` in their metadata.
    if (!isChunk(chunk) || metadata.ls_model_type === undefined) return;
    const id = chunk.id;
    if (!id) return;
    const previous = this.#partial.get(id);
    if (!previous) this.#emit("messages/metadata", toWire({ [id]: { metadata } }));
    const message = previous ? previous.concat(chunk) : chunk;
    this.#partial.set(id, message);
    this.#emit("messages/partial", toWire([message]));
  }

  takeValues(values: unknown): void {
    const messages = (values as { messages?: unknown } | null)?.messages;
    const completed = [messages].flat().filter((message) => {
      if (!isMessage(message) || !message.id || this.#complete.has(message.id)) return false;
      this.#complete.add(message.id);
      return true;
    });
    if (completed.length > 0) this.#emit("messages/complete", toWire(completed));
  }
}
