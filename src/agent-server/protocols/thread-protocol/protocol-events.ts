import { isObject } from "../../../platform/lib/json/json.ts";
import type { EventSelection } from "../../contract/thread-protocol.ts";
import type { Position, StreamedEvent, ThreadEvent } from "../../engine/index.ts";
import { PROTOCOL_PREFIX } from "../../graph-hosts/host.ts";

/** An event of the thread protocol: `event` is its method, `data` the whole event as JSON text. */
export interface ProtocolEvent extends StreamedEvent {
  seq: number;
  namespace: readonly string[];
  /** The channels that contain the event. */
  channels: readonly string[];
}

/** A run's events have the numbers from `run seq * 2 ** 20`. This leaves room for 8.6 billion runs in JavaScript's safe integers. */
const NUMBERS_PER_RUN = 2 ** 20;
const LAST_NUMBER = NUMBERS_PER_RUN - 1;

/** Returns the `seq` of the last event before a run. */
export const seqBefore = (run: { seq: number }): number => run.seq * NUMBERS_PER_RUN - 1;

/** Returns the run's `seq` and the number of its event; {@link LAST_NUMBER} becomes the end of the run. */
export function splitSeq(seq: number): { run_seq: number; event: number } {
  const event = seq % NUMBERS_PER_RUN;
  return { run_seq: Math.floor(seq / NUMBERS_PER_RUN), event: event === LAST_NUMBER ? Infinity : event };
}

/** Events with higher numbers than the room for a run allows share the last number before the end. */
export const seqOf = ({ seq, event }: Position): number =>
  seq * NUMBERS_PER_RUN + (event >= 1e12 ? LAST_NUMBER : Math.min(event, LAST_NUMBER - 1));

/** Creates the protocol events of a thread's log. Readers that receive the same event of a run share the result. */
export class ProtocolEvents {
  readonly #known = new WeakMap<object, readonly ProtocolEvent[]>();

  of(event: ThreadEvent): readonly ProtocolEvent[] {
    if (!event.stored) return threadEvents(event);
    const known = this.#known.get(event.stored);
    if (known) return known;
    const events = event.event.startsWith(PROTOCOL_PREFIX) ? [loggedEvent(event)] : convertedEvents(event);
    this.#known.set(event.stored, events);
    return events;
  }
}

/** Returns an event that is logged in the form of the protocol. */
function loggedEvent({ event, data, at }: ThreadEvent): ProtocolEvent {
  const [method = "", ...namespace] = event.slice(PROTOCOL_PREFIX.length).split("|");
  return createEvent(at, 0, method, namespace, data);
}

function createEvent(
  at: Position,
  part: number,
  method: string,
  namespace: readonly string[],
  params: string,
): ProtocolEvent {
  const seq = seqOf(at);
  const event_id = `${at.seq}-${at.event}${part === 0 ? "" : `-${part}`}`;
  const head = `{"type":"event","event_id":"${event_id}","seq":${seq},"method":${JSON.stringify(method)}`;
  const data = `${head},"params":{"namespace":${JSON.stringify(namespace)},${params.slice(1)}}`;
  return { seq, event: method, namespace, channels: channelsOf(method, params), data };
}

function channelsOf(method: string, params: string): string[] {
  if (method === "input.requested") return ["input"];
  if (method.startsWith("custom:")) return ["custom", method];
  if (method !== "custom") return [method];
  const { data } = JSON.parse(params) as { data: { name?: unknown } | null };
  return typeof data?.name === "string" && data.name !== "" ? ["custom", `custom:${data.name}`] : ["custom"];
}

/** Events of the root graph, by lifecycle event of the run. Others end the run without a result: `interrupted`. */
const ROOT_EVENTS: Record<string, string> = { started: "running", completed: "completed", failed: "failed" };

/** The start and the end of a run as events of the root graph. */
function threadEvents({ mode, data, at }: ThreadEvent): ProtocolEvent[] {
  if (mode !== "lifecycle") return [];
  const { event, graph_id, run_id, error } = JSON.parse(data) as Record<string, string>;
  const status = ROOT_EVENTS[event ?? ""] ?? "interrupted";
  const body = { event: status, graph_name: graph_id, run_id, ...(error !== undefined && { error }) };
  return [createEvent(at, 0, "lifecycle", [], paramsOf(body))];
}

const paramsOf = (data: unknown, node?: string): string => JSON.stringify({ timestamp: Date.now(), node, data });

/** Converts an event of a run that was started without the protocol. */
function convertedEvents({ event, data, at }: ThreadEvent): ProtocolEvent[] {
  const [mode = "", ...namespace] = event.split("|");
  const convert = CONVERSIONS[mode];
  if (!convert) return [];
  return convert(JSON.parse(data) as never).map(({ method = mode, node, data }, part) =>
    createEvent(at, part, method, namespace, paramsOf(data, node)),
  );
}

interface Converted {
  method?: string;
  node?: string;
  data: unknown;
}

/** The events of the run API whose content the protocol also has. */
const CONVERSIONS: Record<string, (data: never) => Converted[]> = {
  values: (chunk: unknown) => {
    // Graphs of the functional API return any value.
    if (!isObject(chunk) || !("__interrupt__" in chunk)) return [{ data: chunk }];
    const { __interrupt__, ...values } = chunk as { __interrupt__: { id?: string; value: unknown }[] };
    return [
      ...(Object.keys(values).length > 0 ? [{ data: values }] : []),
      ...__interrupt__.map(({ id, value }) => ({ method: "input.requested", data: interruptData(id, value) })),
    ];
  },
  updates: (data: Record<string, unknown>) =>
    Object.entries(data).map(([node, values]) => ({ node, data: { node, values } })),
  custom: (payload: unknown) => [{ data: { payload } }],
  tasks: (data: unknown) => [{ data }],
};

/** The JavaScript client reads `payload`, the Python client `value`. */
const interruptData = (interrupt_id: string | undefined, value: unknown) => ({ interrupt_id, payload: value, value });

const isLogged = ({ event }: StreamedEvent): boolean => event.startsWith(PROTOCOL_PREFIX);

/** Replaces events that are logged in the form of the protocol by those of the run API, if it has them. */
export const toRunEvents = <E extends StreamedEvent>(events: readonly E[]): readonly StreamedEvent[] =>
  events.some(isLogged) ? events.flatMap((event) => toRunEvent(event) ?? []) : events;

function toRunEvent(event: StreamedEvent): StreamedEvent | undefined {
  if (!isLogged(event)) return event;
  const [method = "", ...namespace] = event.event.slice(PROTOCOL_PREFIX.length).split("|");
  const convert = RUN_EVENTS[method];
  if (!convert) return undefined;
  const { data } = JSON.parse(event.data) as { data: never };
  const [mode, value] = convert(data);
  return { ...event, event: [mode, ...namespace].join("|"), data: JSON.stringify(value) };
}

const RUN_EVENTS: Record<string, (data: never) => [mode: string, data: unknown]> = {
  values: (data: unknown) => ["values", data],
  updates: ({ node = "", values }: { node?: string; values: unknown }) => ["updates", { [node]: values }],
  custom: (data: { payload?: unknown }) => ["custom", "name" in data ? data : data.payload],
  tasks: (data: unknown) => ["tasks", data],
  "input.requested": ({ interrupt_id, payload }: { interrupt_id: string; payload: unknown }) => [
    "values",
    { __interrupt__: [{ id: interrupt_id, value: payload }] },
  ],
};

type Filter = Pick<EventSelection, "channels" | "namespaces" | "depth">;

/** Returns a function that tests whether events are selected. */
export function selector({ channels, namespaces = [], depth = Infinity }: Filter): (event: ProtocolEvent) => boolean {
  const wanted = new Set(channels);
  const isBelow = (namespace: readonly string[], prefix: readonly string[]) =>
    namespace.length - prefix.length <= depth &&
    prefix.every((segment, i) => namespace[i] !== undefined && matches(namespace[i], segment));
  return ({ channels, namespace }) =>
    channels.some((channel) => wanted.has(channel)) &&
    (namespaces.length === 0 || namespaces.some((prefix) => isBelow(namespace, prefix)));
}

/** A segment is `node:task_id`. A wanted segment without a task matches all tasks of the node. */
const matches = (segment: string, wanted: string): boolean =>
  segment === wanted || (!wanted.includes(":") && segment.slice(0, segment.indexOf(":")) === wanted);
