import { type BaseMessage, isBaseMessage } from "@langchain/core/messages";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { Command, MemorySaver } from "@langchain/langgraph";

// What a stream has to carry, worked out from the graph itself: it runs in this process, and what the library
// yields becomes events as section 7 of the contract describes them.

/** One event of a stream, without its id. */
export interface StreamedEvent {
  event: string;
  data: unknown;
}

/** A graph that is not compiled yet, so that each execution gets a checkpointer of its own. */
// biome-ignore lint/suspicious/noExplicitAny: the state of a graph is its own business
type Builder = { compile(options: { checkpointer: MemorySaver }): any };

/** What a client asks of a run, in the words of the wire. */
export interface Wish {
  input?: unknown;
  stream_mode: string[];
  stream_subgraphs: boolean;
  interrupt_before?: "*" | string[];
  interrupt_after?: "*" | string[];
  command?: { resume: unknown };
}

/** A chunk as the library streams it. */
type Chunk = [namespace: string[], mode: string, payload: unknown];

/** Runs one graph again and again, on one thread. */
export class Reference {
  readonly #graph: ReturnType<Builder["compile"]>;
  readonly #thread_id = crypto.randomUUID();

  constructor(builder: Builder) {
    this.#graph = builder.compile({ checkpointer: new MemorySaver() });
  }

  /** The events that a run must stream, after `metadata`. */
  async events(wish: Wish): Promise<StreamedEvent[]> {
    const streamed = wish.stream_mode.includes("events") ? this.#streamEvents(wish) : this.#stream(wish);
    const messages = new MessageEvents();
    const events: StreamedEvent[] = [];
    for await (const item of streamed) {
      if (!Array.isArray(item)) events.push({ event: "events", data: item });
      else {
        if (wish.stream_mode.includes("messages")) events.push(...messages.from(item));
        events.push(...eventOf(item, wish.stream_mode));
      }
    }
    return events.map(({ event, data }) => ({ event, data: asWire(data) }));
  }

  async *#stream(wish: Wish): AsyncGenerator<Chunk> {
    const stream = await this.#graph.stream(inputOf(wish), this.#options(wish));
    for await (const chunk of stream) yield wish.stream_subgraphs ? chunk : [[], ...chunk];
  }

  /**
   * LangChain's events, without those of runnables that are tagged as hidden. The root's own chunks are among
   * them, as `on_chain_stream`; they are what the other modes carry, and no events for the client.
   */
  async *#streamEvents(wish: Wish): AsyncGenerator<Chunk | StreamEvent> {
    let root: string | undefined;
    for await (const event of this.#graph.streamEvents(inputOf(wish), { ...this.#options(wish), version: "v2" })) {
      root ??= event.run_id;
      if (event.event === "on_chain_stream" && event.run_id === root) {
        yield wish.stream_subgraphs ? event.data.chunk : [[], ...event.data.chunk];
      } else if (!event.tags?.includes("langsmith:hidden")) yield event;
    }
  }

  #options({ stream_mode, stream_subgraphs, interrupt_before, interrupt_after }: Wish) {
    return {
      streamMode: libraryModes(stream_mode),
      subgraphs: stream_subgraphs,
      configurable: { thread_id: this.#thread_id },
      // The server's default. With the library's own, checkpoints are written beside the next step.
      durability: "sync",
      ...(interrupt_before && { interruptBefore: interrupt_before }),
      ...(interrupt_after && { interruptAfter: interrupt_after }),
    };
  }
}

const inputOf = ({ input, command }: Wish) => (command ? new Command(command) : input);

/** The wire calls the library's `messages` `messages-tuple`; its own `messages` is made of two of the library's. */
function libraryModes(modes: string[]): string[] {
  const sources: Record<string, string[]> = {
    "messages-tuple": ["messages"],
    messages: ["messages", "values"],
    events: ["values"],
  };
  return [...new Set(modes.flatMap((mode) => sources[mode] ?? [mode]))];
}

function eventOf([namespace, mode, payload]: Chunk, wanted: string[]): StreamedEvent[] {
  if (!wanted.includes(mode === "messages" ? "messages-tuple" : mode)) return [];
  return [{ event: [mode, ...namespace].join("|"), data: SHAPES[mode]?.(payload) ?? payload }];
}

/** The wire's mode `messages`: pieces as a growing message, every message once when the state has it whole. */
class MessageEvents {
  // biome-ignore lint/suspicious/noExplicitAny: concat() wants the same kind of chunk on both sides
  readonly #growing = new Map<string, any>();
  readonly #complete = new Set<string>();

  from([, mode, payload]: Chunk): StreamedEvent[] {
    if (mode === "messages") return this.#grow(...(payload as [BaseMessage, object]));
    if (mode !== "values") return [];
    const found = ((payload as { messages?: BaseMessage[] }).messages ?? []).filter(
      ({ id }) => id && !this.#complete.has(id),
    );
    for (const { id } of found) this.#complete.add(id as string);
    return found.length > 0 ? [{ event: "messages/complete", data: found }] : [];
  }

  /** Only what a chat model says grows. The library's mode has the messages too that a node just returns. */
  #grow(message: BaseMessage, metadata: { ls_model_type?: string }): StreamedEvent[] {
    const id = message.id as string;
    if (metadata.ls_model_type !== "chat") return [];
    const before = this.#growing.get(id);
    const grown = before ? before.concat(message) : message;
    this.#growing.set(id, grown);
    const partial = { event: "messages/partial", data: [grown] };
    return before ? [partial] : [{ event: "messages/metadata", data: { [id]: { metadata } } }, partial];
  }
}

type Fields = Record<string, unknown>;
type Config = { configurable?: Fields; callbacks?: unknown };

/** Modes that show checkpoints: a position is a pointer there, and configs hold nothing that is LangGraph's own. */
const SHAPES: Record<string, (payload: unknown) => unknown> = {
  checkpoints: (payload) => checkpointOf(payload as Fields),
  debug: (payload) => {
    const chunk = payload as { type: string; payload: Fields };
    return { ...chunk, payload: chunk.type === "checkpoint" ? checkpointOf(chunk.payload) : chunk.payload };
  },
};

function checkpointOf({ parentConfig, ...payload }: Fields): Fields {
  const [config, parent] = [payload.config as Config, parentConfig as Config | undefined];
  return {
    ...payload,
    config: publicConfig(config),
    ...(parent && { parent_config: publicConfig(parent) }),
    checkpoint: pointerOf(config),
    parent_checkpoint: parent ? pointerOf(parent) : null,
    tasks: (payload.tasks as Fields[]).map(({ state, ...task }) =>
      state ? { ...task, checkpoint: pointerOf(state as Config) } : task,
    ),
  };
}

function publicConfig({ callbacks: _, ...config }: Config): Config {
  const own = Object.entries(config.configurable ?? {}).filter(([key]) => !key.startsWith("__"));
  return { ...config, configurable: Object.fromEntries(own) };
}

function pointerOf({ configurable = {} }: Config): Fields {
  const { thread_id, checkpoint_ns = "", checkpoint_id = null, checkpoint_map = null } = configurable;
  return { thread_id, checkpoint_ns, checkpoint_id, checkpoint_map };
}

/** The ten fields that every message on the wire has. */
const UNSET = {
  additional_kwargs: {},
  response_metadata: {},
  name: null,
  id: null,
  example: false,
  tool_calls: [],
  invalid_tool_calls: [],
  usage_metadata: null,
};

/** A value as JSON carries it; messages as flat objects. */
function asWire(value: unknown): unknown {
  const text = JSON.stringify(value, function (this: Fields, key, plain) {
    const original = this[key];
    if (!isBaseMessage(original)) return plain;
    const { type, data } = original.toDict();
    const set = Object.entries(data).filter(([, field]) => field !== undefined);
    return { ...UNSET, ...Object.fromEntries(set), type };
  });
  return text === undefined ? null : JSON.parse(text);
}
