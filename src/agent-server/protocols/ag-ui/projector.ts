import { type AGUIEvent, aggregateTokenUsage, EventType, PROTOCOL_VERSION, type RunFinishedOutcome } from "@ag-ui/core";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import type { RunAgentInput } from "../../contract/ag-ui.ts";
import type { Interrupt } from "../../contract/records.ts";
import type { StreamedEvent } from "../../engine/index.ts";
import type { RunRow } from "../../storage/schema.ts";
import { MessageEvents } from "./message-events.ts";
import { type GraphMessage, toAgUiInterrupt, toAgUiMessages } from "./messages.ts";

/** The end of a run; undefined if the run was deleted or rolled back. */
export type RunEnd = Pick<RunRow, "status" | "output" | "cancel_action"> | undefined;

/**
 * Converts the events of one run to AG-UI events. They obey the rules that AG-UI clients check: a message, tool call or step is not started
 * again while it is open, and all are closed before the run ends.
 */
export class AgUiProjector {
  readonly #request: Pick<RunAgentInput, "threadId" | "runId">;
  /** Whether the client knows AG-UI 1.0. Older clients know no outcome `cancelled`. */
  readonly #isModern: boolean;
  /** Number of open tasks by node name: parallel tasks of a node are one step. */
  readonly #steps = new Map<string, number>();
  readonly #messages = new MessageEvents((event) => this.#emit(event));
  /** The last state that was sent, as JSON text. */
  #snapshot: string | undefined;
  #events: StreamedEvent[] = [];

  constructor(request: Pick<RunAgentInput, "threadId" | "runId" | "protocolVersion">) {
    this.#request = { threadId: request.threadId, runId: request.runId };
    this.#isModern = request.protocolVersion !== undefined;
  }

  start(): StreamedEvent[] {
    const version = this.#isModern && { protocolVersion: PROTOCOL_VERSION };
    this.#emit({ type: EventType.RUN_STARTED, ...this.#request, ...version });
    return this.#taken();
  }

  take(events: readonly StreamedEvent[]): StreamedEvent[] {
    for (const event of events) this.#take(event);
    return this.#taken();
  }

  /** Ends a request that finds open interrupts and has no response to them. */
  repeat(interrupts: readonly Interrupt[]): StreamedEvent[] {
    this.#interrupt(interrupts);
    return this.#taken();
  }

  finish(run: RunEnd): StreamedEvent[] {
    this.#closeAll();
    const output: unknown = JSON.parse(run?.output ?? "null");
    if (run?.status === "error" || run?.status === "timeout") this.#fail(output);
    else this.#end(run, output);
    return this.#taken();
  }

  #fail(output: unknown): void {
    const { error, message } = (isObject(output) && isObject(output.__error__) ? output.__error__ : {}) as JsonObject;
    this.#emit({
      type: EventType.RUN_ERROR,
      message: String(message || "The run failed."),
      code: String(error ?? "Error"),
    });
  }

  #end(run: RunEnd, output: unknown): void {
    const { __interrupt__: interrupts, ...values } = isObject(output) ? output : {};
    if (isObject(output)) {
      this.#sendState(interrupts ? JSON.stringify(values) : (run?.output as string));
      if (Array.isArray(values.messages))
        this.#emit({ type: EventType.MESSAGES_SNAPSHOT, messages: toAgUiMessages(values.messages) });
    }
    const cancelled = !run || run.cancel_action !== null || (run.status === "interrupted" && !interrupts);
    if (cancelled) this.#cancelled();
    // A breakpoint is not an interrupt: it expects no response, and the next request continues the graph.
    else this.#interrupt((interrupts as Interrupt[] | undefined) ?? []);
  }

  #cancelled(): void {
    if (this.#isModern) this.#finished({ type: "cancelled" });
    else this.#emit({ type: EventType.RUN_ERROR, message: "The run was cancelled.", code: "cancelled" });
  }

  #interrupt(interrupts: readonly Interrupt[]): void {
    for (const { id, value = null } of interrupts) {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      this.#emit({ type: EventType.CUSTOM, name: "on_interrupt", value: text, rawEvent: { id, value } });
    }
    if (interrupts.length === 0) this.#finished({ type: "success" });
    else this.#finished({ type: "interrupt", interrupts: interrupts.map(toAgUiInterrupt) });
  }

  /** CopilotKit's clients before AG-UI 1.0 do not resume after a finished run with an outcome. */
  #finished(outcome: RunFinishedOutcome): void {
    const usage = aggregateTokenUsage(this.#messages.usage);
    this.#emit({
      type: EventType.RUN_FINISHED,
      ...this.#request,
      ...(this.#isModern && { outcome }),
      ...(usage.length > 0 && { usage }),
    });
  }

  #take({ event, data }: StreamedEvent): void {
    const [mode, ...namespace] = event.split("|");
    switch (mode) {
      case "values":
        // The end of the run reports the interrupts.
        if (namespace.length > 0 || data.startsWith('{"__interrupt__":')) break;
        this.#messages.closeTask("");
        this.#sendState(data);
        break;
      case "tasks":
        this.#takeTask(taskOf(data), namespace);
        break;
      case "messages":
        this.#messages.take(...(JSON.parse(data) as [GraphMessage, JsonObject]));
        break;
      case "custom":
        this.#takeCustom(JSON.parse(data));
        break;
      case "metadata":
      case "gap":
        // A further attempt of the run, or a reader that has fallen behind. The snapshot at the end is complete.
        this.#closeAll();
    }
  }

  #sendState(text: string): void {
    if (text === this.#snapshot) return;
    this.#snapshot = text;
    // The state is not parsed: it can have megabytes.
    this.#events.push({ event: EventType.STATE_SNAPSHOT, data: `{"type":"STATE_SNAPSHOT","snapshot":${text}}` });
  }

  #takeTask({ id, name, starts }: Task, namespace: readonly string[]): void {
    const count = this.#steps.get(name) ?? 0;
    if (starts) {
      this.#steps.set(name, count + 1);
      if (count === 0) this.#emit({ type: EventType.STEP_STARTED, stepName: name });
      return;
    }
    this.#messages.closeTask([...namespace, `${name}:${id}`].join("|"));
    if (count > 1) this.#steps.set(name, count - 1);
    else if (this.#steps.delete(name)) this.#emit({ type: EventType.STEP_FINISHED, stepName: name });
  }

  #takeCustom(value: unknown): void {
    // The form of named events; the stream mode itself has no names.
    if (isObject(value) && typeof value.name === "string" && "value" in value)
      this.#emit({ type: EventType.CUSTOM, name: value.name, value: value.value });
    else this.#emit({ type: EventType.CUSTOM, name: "custom", value });
  }

  #closeAll(): void {
    this.#messages.reset();
    for (const stepName of this.#steps.keys()) this.#emit({ type: EventType.STEP_FINISHED, stepName });
    this.#steps.clear();
  }

  #emit(event: AGUIEvent): void {
    this.#events.push({ event: event.type, data: JSON.stringify(event) });
  }

  #taken(): StreamedEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}

/** The start or the end of a task. */
interface Task {
  id: string;
  name: string;
  starts: boolean;
}

const TASK = /^\{"id":"([^"\\]*)","name":"([^"\\]*)","(\w+)":/;

/** Reads the start of an event text: the rest is the state, whose parsing takes 4 ms for 2 MB. */
function taskOf(text: string): Task {
  const [, id, name, field] = TASK.exec(text) ?? [];
  if (id !== undefined && name !== undefined) return { id, name, starts: field === "input" };
  const task = JSON.parse(text) as Task;
  return { id: task.id, name: task.name, starts: "input" in task };
}
