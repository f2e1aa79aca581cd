import { toCheckpointKey } from "./state.ts";
import { isMessage, type Message, toWire } from "./wire.ts";

type Emit = (event: string, data: string) => void;

/** The wire's modes, and the LangGraph modes that feed them. */
const SOURCES: Record<string, string[]> = {
  "messages-tuple": ["messages"],
  // Built from the tokens and, for messages that no model streamed, from the values.
  messages: ["messages", "values"],
  events: [],
};

/** What to ask of LangGraph for the wanted modes. `values` always: the last of them is the run's output. */
export function sourceModes(wanted: readonly string[]): string[] {
  return [...new Set(["values", ...wanted.flatMap((mode) => SOURCES[mode] ?? [mode])])];
}

/** Turns what a graph streams into the events that the client asked for, and remembers what the run came to. */
export class StreamTranslator {
  readonly #wanted: ReadonlySet<string>;
  readonly #emit: Emit;
  readonly #messages: MessageEvents;
  /** The last full state of the root graph. */
  lastValues: unknown;
  /** The same as JSON text, if it was told as an event. */
  lastText: string | undefined;
  /** The interrupts on which the root graph has stopped; empty for a breakpoint, undefined when it has not stopped. */
  interrupts: unknown[] | undefined;

  constructor(wanted: readonly string[], emit: Emit) {
    this.#wanted = new Set(wanted);
    this.#emit = emit;
    this.#messages = new MessageEvents(emit);
  }

  /** One chunk of the graph's stream. */
  take(namespace: readonly string[], mode: string, chunk: unknown): void {
    if (mode === "values" && namespace.length === 0) this.#remember(chunk);
    if (this.#wanted.has("messages")) {
      if (mode === "messages") this.#messages.takeToken(chunk as [unknown, Record<string, unknown>]);
      if (mode === "values") this.#messages.takeValues(chunk);
    }
    if (mode === "messages") {
      if (this.#wanted.has("messages-tuple")) this.#emit(named("messages", namespace), toWire(chunk));
    } else if (this.#wanted.has(mode)) {
      const text = toWire(SHAPES[mode]?.(chunk) ?? chunk);
      if (chunk === this.lastValues) this.lastText = text;
      this.#emit(named(mode, namespace), text);
    }
  }

  /** One LangChain event, for the mode `events`. */
  takeEvent(event: { tags?: string[] }): void {
    if (this.#wanted.has("events") && !event.tags?.includes("langsmith:hidden")) this.#emit("events", toWire(event));
  }

  #remember(chunk: unknown): void {
    if (typeof chunk === "object" && chunk !== null && "__interrupt__" in chunk) {
      this.interrupts = [...(this.interrupts ?? []), ...(chunk.__interrupt__ as unknown[])];
    } else {
      this.lastValues = chunk;
      this.lastText = undefined;
    }
  }
}

const named = (event: string, namespace: readonly string[]) => [event, ...namespace].join("|");

/** Modes whose chunks hold configs: the wire shows checkpoints as pointers, and nothing internal. */
const SHAPES: Record<string, (chunk: unknown) => unknown> = {
  debug: (chunk) => {
    const debug = chunk as { type: string; payload: Record<string, unknown> };
    return {
      ...debug,
      payload: debug.type === "checkpoint" ? checkpointShape(debug.payload) : taskShape(debug.payload),
    };
  },
  checkpoints: (chunk) => checkpointShape(chunk as Record<string, unknown>),
  tasks: (chunk) => taskShape(chunk as Record<string, unknown>),
};

type Config = { configurable?: Record<string, unknown>; [field: string]: unknown };

function checkpointShape({
  config,
  parentConfig,
  tasks,
  ...payload
}: Record<string, unknown>): Record<string, unknown> {
  return {
    ...payload,
    config: publicConfig(config as Config | undefined),
    parent_config: publicConfig(parentConfig as Config | undefined),
    checkpoint: config ? toCheckpointKey(config as Config) : null,
    parent_checkpoint: parentConfig ? toCheckpointKey(parentConfig as Config) : null,
    tasks: ((tasks as Record<string, unknown>[] | undefined) ?? []).map(taskShape),
  };
}

function taskShape({ state, ...task }: Record<string, unknown>): Record<string, unknown> {
  if (state === undefined) return task;
  return { ...task, state: null, checkpoint: toCheckpointKey(state as Config) };
}

/** Fields of a config that are the library's own objects. */
const PRIVATE_FIELDS = new Set(["callbacks", "signal", "store", "writer", "interrupt", "control", "serverInfo"]);

function publicConfig(config: Config | undefined): Config | null {
  if (!config) return null;
  const fields = Object.entries(config).filter(([name]) => !PRIVATE_FIELDS.has(name));
  const configurable = Object.entries(config.configurable ?? {}).filter(
    ([key]) => !key.startsWith("__") && !key.startsWith("langgraph_auth_"),
  );
  return { ...Object.fromEntries(fields), configurable: Object.fromEntries(configurable) };
}

/** A piece of a message; pieces can be joined. */
interface MessageChunk extends Message {
  concat(next: MessageChunk): MessageChunk;
}

const isChunk = (value: unknown): value is MessageChunk => isMessage(value) && typeof value.concat === "function";

/** The mode `messages`: tokens as growing messages, and each message once when it is in the state. */
class MessageEvents {
  readonly #emit: Emit;
  readonly #partial = new Map<string, MessageChunk>();
  readonly #complete = new Set<string>();

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  takeToken([chunk, metadata]: [unknown, Record<string, unknown>]): void {
    // A node's output may be a chunk too; the pieces that a model streams are told by its name in the metadata.
    if (!isChunk(chunk) || metadata.ls_model_type === undefined) return;
    const id = chunk.id;
    if (!id) return;
    const before = this.#partial.get(id);
    if (!before) this.#emit("messages/metadata", toWire({ [id]: { metadata } }));
    const whole = before ? before.concat(chunk) : chunk;
    this.#partial.set(id, whole);
    this.#emit("messages/partial", toWire([whole]));
  }

  takeValues(values: unknown): void {
    const found = (values as { messages?: unknown } | null)?.messages;
    const fresh = [found].flat().filter((message) => {
      if (!isMessage(message) || !message.id || this.#complete.has(message.id)) return false;
      this.#complete.add(message.id);
      return true;
    });
    if (fresh.length > 0) this.#emit("messages/complete", toWire(fresh));
  }
}
