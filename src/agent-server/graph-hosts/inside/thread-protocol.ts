import { PROTOCOL_PREFIX } from "../host.ts";
import type { MessageBlocks, MessageEvent } from "./message-blocks.ts";
import { type Emit, eventName, type StreamedState, toPublicTask } from "./stream-modes.ts";
import { toWire } from "./wire.ts";

/** An event of the thread protocol, as LangGraph creates it. */
export interface ProtocolEvent {
  method: string;
  params: { namespace: string[]; timestamp: number; node?: string | undefined; data: unknown };
}

/** The modes of `graph.stream()` that contain all channels of the thread protocol. */
export const PROTOCOL_MODES = ["values", "updates", "messages", "tools", "custom", "tasks"];

type Chunk = [namespace: string[], mode: string, payload: unknown];

/** Replaces the messages in the stream of a graph by the events of their content blocks. */
export async function* withMessageBlocks(chunks: AsyncIterable<Chunk>, messages: MessageBlocks): AsyncGenerator<Chunk> {
  // LangGraph adds the node and the run of the model from the metadata.
  const toChunk = ({ namespace, node, data }: MessageEvent): Chunk => [
    namespace,
    "messages",
    [data, { langgraph_node: node }],
  ];
  for await (const chunk of chunks) {
    const [namespace, mode, payload] = chunk;
    if (mode === "messages") {
      yield* messages.take(payload as Parameters<MessageBlocks["take"]>[0]).map(toChunk);
      continue;
    }
    if (mode === "updates")
      for (const node of Object.keys(payload as object)) yield* messages.endNode(namespace, node).map(toChunk);
    if (isTaskResult(mode, payload)) yield* messages.endTask(namespace, payload).map(toChunk);
    yield chunk;
  }
  yield* messages.end().map(toChunk);
}

const isTaskResult = (mode: string, payload: unknown): payload is { name: string; id: string } =>
  mode === "tasks" && typeof payload === "object" && payload !== null && "result" in payload;

interface Interrupt {
  id?: string;
  value?: unknown;
}

type Event = Pick<ProtocolEvent["params"], "namespace" | "node" | "data"> & { name: string };

/** Converts the thread protocol events of a graph to events of the log, and records the state of the graph. */
export class ThreadProtocolTranslator {
  readonly #emit: Emit;
  readonly #state: StreamedState;
  /** By id. A subgraph reports an interrupt before its parents report it again. */
  readonly #interrupts = new Map<string, Event>();

  constructor(emit: Emit, state: StreamedState) {
    this.#emit = emit;
    this.#state = state;
  }

  take({ method, params: { namespace, timestamp, node, data } }: ProtocolEvent): void {
    const send = (data: unknown) => this.#send({ name: method, namespace, node, data }, timestamp);
    if (method === "values") {
      if (namespace.length === 0) this.#state.record(data);
      this.#collectInterrupts(data, namespace);
      const values = withoutInterrupts(data);
      if (values !== undefined) send(values);
    } else if (method === "lifecycle") {
      // The log reports the start and the end of the run itself: the end only after it is stored.
      if (namespace.length > 0) send(this.#lifecycle(data as { event: string }, namespace));
    } else {
      send(method === "tasks" ? toPublicTask(data as Record<string, unknown>) : data);
    }
  }

  takeMessage({ namespace, node, data }: MessageEvent): void {
    this.#send({ name: "messages", namespace, node, data }, Date.now());
  }

  /** Requests the responses to interrupts: clients stop reading the other events of the run then. */
  end(): void {
    for (const request of this.#interrupts.values()) this.#send(request, Date.now());
  }

  #send({ name, namespace, node, data }: Event, timestamp: number): void {
    const text = toWire(data);
    if (data === this.#state.lastValues) this.#state.lastValuesText = text;
    const about = node === undefined ? "" : `"node":${JSON.stringify(node)},`;
    this.#emit(eventName(PROTOCOL_PREFIX + name, namespace), `{"timestamp":${timestamp},${about}"data":${text}}`);
  }

  #collectInterrupts(data: unknown, namespace: string[]): void {
    for (const { id, value } of interruptsOf(data)) {
      if (id === undefined || this.#interrupts.has(id)) continue;
      // The JavaScript client reads `payload`, the Python client `value`.
      const request = { interrupt_id: id, payload: value, value };
      this.#interrupts.set(id, { name: "input.requested", namespace, data: request });
    }
  }

  /** LangGraph reports subgraphs that wait for a response as completed. */
  #lifecycle(data: { event: string }, namespace: readonly string[]): object {
    const waits = () =>
      [...this.#interrupts.values()].some((at) => namespace.every((part, i) => at.namespace[i] === part));
    return data.event === "completed" && waits() ? { ...data, event: "interrupted" } : data;
  }
}

const hasInterrupts = (data: unknown): data is { __interrupt__: Interrupt[] } =>
  typeof data === "object" && data !== null && "__interrupt__" in data;

const interruptsOf = (data: unknown): Interrupt[] => (hasInterrupts(data) ? data.__interrupt__ : []);

/** Returns undefined if the chunk has interrupts only. */
function withoutInterrupts(data: unknown): unknown {
  if (!hasInterrupts(data)) return data;
  const { __interrupt__, ...values } = data;
  return Object.keys(values).length > 0 ? values : undefined;
}
