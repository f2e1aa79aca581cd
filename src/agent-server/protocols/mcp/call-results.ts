import { type CallToolResult, type InputRequiredResult, inputRequired } from "@modelcontextprotocol/server";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import type { StreamedEvent } from "../../engine/index.ts";
import type { RunRow } from "../../storage/schema.ts";
import { parsed } from "../ag-ui/messages.ts";
import type { Interrupt } from "./tool-calls.ts";

/** A longer output is not parsed, which would block other requests for more than a few milliseconds: the result contains only its text. */
const MAX_STRUCTURED_LENGTH = 256 * 1024;

const MAX_MESSAGE_LENGTH = 2_000;

const text = (content: string): CallToolResult["content"][number] => ({ type: "text", text: content });

const cut = (message: string, length: number): string =>
  message.length > length ? `${message.slice(0, length)}…` : message;

export const failureOf = (message: string): CallToolResult => ({ content: [text(message)], isError: true });

/** @param output the output of a run, as JSON */
export function outputOf({ run_id, thread_id }: RunRow, output: string, more: readonly string[] = []): CallToolResult {
  const parsed: unknown = output.length > MAX_STRUCTURED_LENGTH ? undefined : JSON.parse(output);
  return {
    content: [output, ...more].map(text),
    ...(isObject(parsed) && { structuredContent: parsed }),
    _meta: { run_id, ...(more.length > 0 && { thread_id }) },
  };
}

/** @param output `{"__error__": {error, message}}` */
export function errorOf(output: string): CallToolResult {
  const { __error__ } = JSON.parse(output) as { __error__?: { error: string; message: string } };
  return failureOf(__error__ ? `${__error__.error}: ${__error__.message}` : "The run failed.");
}

export const cancelledOf = ({ cancel_reason }: Pick<RunRow, "cancel_reason">): CallToolResult =>
  failureOf(`The run was cancelled.${cancel_reason === null ? "" : ` Reason: ${cancel_reason}`}`);

/** The result of a paused run for clients that cannot be asked. */
export function pausedOf(run: RunRow, output: string): CallToolResult {
  const { assistant_id, thread_id } = run;
  const body = JSON.stringify({ assistant_id, command: { resume: "<answer>" } });
  return outputOf(run, output, [
    `The run is paused and is waiting for input. To continue, call POST /threads/${thread_id}/runs/wait on this server with the body ${body}. Replace "<answer>" with the answer or, if there are several interrupts, with an object that maps the ID of each interrupt to its answer.`,
  ]);
}

/** Asks for the answers to interrupts, which can have any value, so the form has one text field. */
export function questionsOf({ run_id }: RunRow, interrupts: readonly Interrupt[]): InputRequiredResult {
  // JavaScript has interrupts without a value.
  const ask = ({ value = null }: Interrupt) =>
    inputRequired.elicit({
      message: cut(typeof value === "string" ? value : JSON.stringify(value), MAX_MESSAGE_LENGTH),
      requestedSchema: {
        type: "object",
        properties: { answer: { type: "string", title: "Answer", description: "Text, or a JSON value." } },
        required: ["answer"],
      },
    });
  const inputRequests = Object.fromEntries(interrupts.map((interrupt) => [interrupt.id, ask(interrupt)]));
  return inputRequired({ inputRequests, requestState: run_id });
}

/** Returns the answers to interrupts, by id; "declined" if the user declined to answer one of them. */
export function answersIn(
  responses: Record<string, unknown> | undefined,
  interrupts: readonly Interrupt[],
): JsonObject | "declined" {
  const answers: JsonObject = {};
  for (const { id } of interrupts) {
    const response = responses && Object.hasOwn(responses, id) ? responses[id] : undefined;
    if (!isObject(response)) continue;
    if (response.action !== "accept" || !isObject(response.content)) return "declined";
    const { answer = null } = response.content;
    answers[id] = typeof answer === "string" ? parsed(answer) : answer;
  }
  return answers;
}

/** Returns the message of a progress notification: the node that has finished, or what the graph has written to its stream. */
export function progressOf({ event, data }: StreamedEvent): string | undefined {
  const [mode] = event.split("|");
  if (mode === "custom") return cut(data.startsWith('"') ? (JSON.parse(data) as string) : data, MAX_MESSAGE_LENGTH);
  // The data is {"<node>": update}. Only the name is parsed.
  const name = mode === "updates" ? /^\{("(?:[^"\\]|\\.){0,200}")/.exec(data)?.[1] : undefined;
  return name === undefined ? undefined : (JSON.parse(name) as string);
}
