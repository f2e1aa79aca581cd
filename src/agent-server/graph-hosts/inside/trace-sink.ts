import type { RunOrder, TraceOrder } from "../host.ts";

const FLUSH_MS = 250;
/** A run that is still open after this time is sent before its end. Most runs end sooner and are sent once. */
const OPEN_MS = 500;
const MAX_BUFFERED = 100;
/** Larger messages are split. When the buffered payloads exceed this size, they are sent immediately. */
const MAX_MESSAGE_CHARS = 8 * 2 ** 20;
/** Maximum wait for the callbacks that LangChain executes in the background. */
const FINISH_MS = 1_000;
/** The limit of a field in `POST /runs`. */
const MAX_FIELD_CHARS = 20 * 2 ** 20;

/** A run as the tracer reports it; `POST /runs` takes the same fields. */
export interface TracedRun {
  id?: string;
  inputs?: unknown;
  outputs?: unknown;
  extra?: { metadata?: Record<string, unknown>; [key: string]: unknown };
  events?: { name?: string }[];
  [field: string]: unknown;
}

interface Span {
  /** All fields except inputs and outputs, as the tracer last reported them. */
  fields: TracedRun;
  /** As JSON text, because the graph may change the objects later. Inputs are sent once. */
  inputs: string | undefined;
  outputs: string | undefined;
  is_ended: boolean;
  is_sent: boolean;
  created_at: number;
}

export type EndOfTrace =
  /** `error`: error of the root if the graph could not be created. `interrupts`: the interrupts of a run that waits to be resumed. */
  | { kind: "ended"; error: string | undefined; interrupts?: unknown }
  /** The service ends the open runs. */
  | { kind: "stopped" }
  /** The run continues in another process. */
  | { kind: "continues" };

/** Parts of names that denote secrets, such as `api_key` and `accessToken`, but not `max_tokens`. */
const SECRET = /token(?!s\b|s_|_count|_usage)|secret|password|api[_-]?key|authorization/i;

/** Whether a metadata key is not sent: LangGraph copies `configurable`, with the server's own keys and with secrets, into the metadata. */
const isHidden = (key: string): boolean =>
  key.startsWith("__") || key.startsWith("langgraph_auth_") || key.startsWith("langsmith") || SECRET.test(key);

/** Run types whose constructor arguments are stored. LangChain reports those of every object. */
const SERIALIZED_TYPES = new Set(["llm", "prompt"]);

const UUID_CHARS = 36;

type SendRuns = (runs: Uint8Array<ArrayBuffer>, is_last: boolean) => void;

/** The tag of LangGraph's own steps, such as `__start__`, which repeats the input. They are half of the runs of a short trace. */
const HIDDEN_TAG = "langsmith:hidden";

const ABANDONED = "The run ended before this step finished.";

/**
 * The LangSmith client for the tracer of an agent run: buffers the runs of the trace and sends them to the service. A traced run that is open
 * for longer than {@link OPEN_MS} is sent twice. The tracer calls the methods from callbacks, so they neither throw nor wait.
 */
export class TraceSink {
  readonly #order: RunOrder;
  readonly #trace: TraceOrder;
  readonly #send: SendRuns;
  readonly #spans = new Map<string, Span>();
  readonly #root_ended = Promise.withResolvers<void>();
  /** The reported end of the root, kept until the outcome is known: a run that continues in another process has not ended. */
  #root_end: TracedRun | undefined;
  readonly #hidden = new Set<string>();
  #ended = 0;
  #buffered_chars = 0;
  #timer: NodeJS.Timeout | undefined;
  #is_finished = false;
  #has_root = false;

  constructor(order: RunOrder, trace: TraceOrder, send: SendRuns) {
    this.#order = order;
    this.#trace = trace;
    this.#send = send;
  }

  async createRun(run: TracedRun): Promise<void> {
    if (this.#is_finished || run.id === undefined) return;
    if ((run.tags as string[] | undefined)?.includes(HIDDEN_TAG)) return void this.#hidden.add(run.id);
    this.#has_root ||= run.id === this.#order.run_id;
    const { inputs, outputs, ...fields } = run;
    const is_ended = fields.end_time !== undefined;
    const texts = { inputs: textOf(inputs), outputs: textOf(outputs) };
    this.#spans.set(run.id, { fields, ...texts, is_ended, is_sent: false, created_at: performance.now() });
    this.#count(texts, is_ended);
    this.#timer ??= setTimeout(() => this.#onTimer(), FLUSH_MS);
  }

  async updateRun(id: string, { inputs, outputs, ...fields }: TracedRun): Promise<void> {
    const span = this.#spans.get(id);
    if (this.#is_finished || !span) return;
    const texts = { inputs: textOf(inputs), outputs: textOf(outputs) };
    span.inputs = texts.inputs ?? span.inputs;
    span.outputs = texts.outputs ?? span.outputs;
    if (id === this.#order.run_id) {
      this.#root_end = fields;
      return this.#root_ended.resolve();
    }
    Object.assign(span.fields, fields, { id });
    span.is_ended = true;
    this.#count(texts, true);
  }

  /** Sends the rest of the trace. Called after the outcome of the run has been sent. */
  async finish(ending: EndOfTrace): Promise<void> {
    if (this.#has_root) await Promise.race([this.#root_ended.promise, timeout(FINISH_MS)]);
    else if (ending.kind === "ended") this.#createRoot(ending.error);
    this.#is_finished = true;
    clearTimeout(this.#timer);
    const root = this.#spans.get(this.#order.run_id);
    if (root && this.#root_end && ending.kind === "ended") {
      Object.assign(root.fields, this.#root_end, { id: this.#order.run_id });
      // Clears the error that an earlier attempt may have stored.
      if (this.#order.epoch > 1) root.fields.error ??= "";
      root.is_ended = true;
    }
    if (root && ending.kind === "ended" && ending.interrupts !== undefined)
      root.outputs = withField(root.outputs, "__interrupt__", ending.interrupts);
    if (ending.kind === "ended") this.#abandonOpen();
    this.#sendDue(() => true, true);
  }

  /** Creates the root of the trace if the graph could not be loaded or created. */
  #createRoot(error: string | undefined): void {
    const { run_id, graph_id, kwargs } = this.#order;
    const { started_at, project_name, parent } = this.#trace;
    const fields = {
      id: run_id,
      name: graph_id,
      run_type: "chain",
      start_time: started_at,
      end_time: Date.now(),
      error,
      session_name: project_name,
      ...(parent?.kind === "run" ? { parent_run_id: parent.dotted_order.slice(-UUID_CHARS) } : { trace_id: run_id }),
    };
    const span = { is_ended: true, is_sent: false, created_at: 0, outputs: undefined };
    this.#spans.set(run_id, { ...span, fields, inputs: textOf(kwargs.input ?? {}) });
  }

  #abandonOpen(): void {
    for (const { fields, is_ended } of this.#spans.values())
      if (!is_ended) Object.assign(fields, { end_time: Date.now(), error: ABANDONED });
  }

  #count({ inputs = "", outputs = "" }: Pick<Span, "inputs" | "outputs">, is_ended: boolean): void {
    this.#ended += Number(is_ended);
    this.#buffered_chars += inputs.length + outputs.length;
    if (this.#ended >= MAX_BUFFERED || this.#buffered_chars > MAX_MESSAGE_CHARS) this.#flush();
  }

  #onTimer(): void {
    this.#flush();
    this.#timer = this.#spans.size === 0 ? undefined : setTimeout(() => this.#onTimer(), FLUSH_MS);
  }

  #flush(): void {
    const open_since = this.#buffered_chars > MAX_MESSAGE_CHARS ? Infinity : performance.now() - OPEN_MS;
    this.#sendDue((span) => span.is_ended || (!span.is_sent && span.created_at < open_since), false);
  }

  #sendDue(isDue: (span: Span) => boolean, is_last: boolean): void {
    this.#ended = 0;
    this.#buffered_chars = 0;
    let texts: string[] = [];
    let chars = 0;
    for (const [id, span] of this.#spans) {
      if (!isDue(span)) continue;
      const text = this.#textOfSpan(id, span);
      texts.push(text);
      chars += text.length;
      span.is_sent = true;
      if (span.is_ended) this.#spans.delete(id);
      if (chars < MAX_MESSAGE_CHARS) continue;
      this.#send(encoded(texts), false);
      [texts, chars] = [[], 0];
    }
    if (texts.length > 0 || is_last) this.#send(encoded(texts), is_last);
  }

  #textOfSpan(id: string, span: Span): string {
    const { child_runs: _, attachments: __, serialized, extra, events, reference_example_id, ...rest } = span.fields;
    const is_root = id === this.#order.run_id;
    const main: TracedRun = is_root ? { ...rest, ...this.#fieldsOfRoot(rest, reference_example_id) } : rest;
    if (this.#hidden.size > 0) this.#skipHidden(main);
    if (this.#trace.parent?.kind === "span") {
      // The position in the trace is unknown until the parent span arrives.
      delete main.dotted_order;
      delete main.trace_id;
    }
    const payloads = {
      inputs: span.inputs,
      outputs: span.outputs,
      extra: textOf({ ...extra, metadata: this.#metadataOf(extra?.metadata, is_root) }),
      events: textOf(events),
      serialized: SERIALIZED_TYPES.has(String(rest.run_type)) ? textOf(serialized) : undefined,
    };
    span.inputs = undefined;
    const texts = Object.entries(payloads).map(([name, text]) => (text === undefined ? "" : `,"${name}":${text}`));
    return `${jsonText(main)?.slice(0, -1)}${texts.join("")}}`;
  }

  /** Places a run below its nearest ancestor that is sent. */
  #skipHidden(run: TracedRun): void {
    if (typeof run.dotted_order !== "string" || !this.#hidden.has(String(run.parent_run_id))) return;
    const segments = run.dotted_order.split(".").filter((segment) => !this.#hidden.has(segment.slice(-UUID_CHARS)));
    run.dotted_order = segments.join(".");
    run.parent_run_id = segments.at(-2)?.slice(-UUID_CHARS);
  }

  #fieldsOfRoot({ tags }: TracedRun, reference_example_id: unknown): TracedRun {
    const { parent } = this.#trace;
    const all_tags = [...((tags as string[] | undefined) ?? []), ...this.#trace.tags];
    return {
      reference_example_id,
      tags: all_tags.length > 0 ? all_tags : undefined,
      ...(parent?.kind === "span" && { parent_run_id: parent.run_id }),
    };
  }

  #metadataOf(metadata: Record<string, unknown> = {}, is_root: boolean): Record<string, unknown> {
    const kept = Object.entries(metadata).filter(([key]) => !isHidden(key));
    return { ...Object.fromEntries(kept), ...(is_root && this.#trace.metadata) };
  }
}

const encoded = (texts: string[]) => new TextEncoder().encode(texts.join(","));

const timeout = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms).unref());

/** Adds a field to the JSON text of an object. */
const withField = (json = "{}", name: string, value: unknown): string =>
  `${json.slice(0, -1)}${json === "{}" ? "" : ","}"${name}":${JSON.stringify(value)}}`;

/** Returns JSON text as LangSmith's clients send it, with messages in LangChain's format. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const text = jsonText(value);
  if (text === undefined || text.length <= MAX_FIELD_CHARS) return text;
  return JSON.stringify({
    dropped: `The value is too large: its JSON has ${text.length} characters; the maximum is ${MAX_FIELD_CHARS}.`,
  });
}

function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // A cycle, a BigInt or a toJSON() that throws. tryJson() takes five times as long.
    return tryJson(value) ?? JSON.stringify({ unserializable: String(value) });
  }
}

function tryJson(value: unknown): string | undefined {
  const ancestors: unknown[] = [];
  try {
    return JSON.stringify(value, function (this: unknown, _, item: unknown) {
      if (typeof item === "bigint") return String(item);
      if (typeof item !== "object" || item === null) return item;
      while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop();
      if (ancestors.includes(item)) return "[circular]";
      ancestors.push(item);
      return item;
    });
  } catch {
    return undefined;
  }
}
