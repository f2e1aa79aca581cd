/** Previews of inputs and outputs, for the API and for the web app. This file imports nothing, so that the web app can use its values. */

type Fields = Record<string, unknown>;
export type PayloadSide = "inputs" | "outputs";

/** Value of a chosen key that shows the complete payload as JSON. */
export const WHOLE_PAYLOAD = "$";

/** Keys of the main text of a payload, by side. The keys of the other side follow, so that any payload with a known key has a text. */
const QUESTIONS = ["question", "query", "input", "prompt", "text", "topic", "task", "message"];
const ANSWERS = ["answer", "output", "result", "response", "completion", "text", "content", "summary"];
const MAIN_KEYS: Record<PayloadSide, readonly string[]> = {
  inputs: [...QUESTIONS, ...ANSWERS],
  outputs: [...ANSWERS, ...QUESTIONS],
};

/**
 * Returns a preview: the last message of the user (inputs) or of the model (outputs), the only text, the main text, or JSON.
 *
 * @param key top-level key whose value is shown, or {@link WHOLE_PAYLOAD}
 */
export function previewOf(payload: unknown, side: PayloadSide, key?: string): string {
  if (key === WHOLE_PAYLOAD) return JSON.stringify(payload) ?? "";
  if (key !== undefined && isObject(payload) && Object.hasOwn(payload, key)) {
    const value = payload[key];
    return typeof value === "string" ? value : (mainText({ [key]: value }, side) ?? JSON.stringify(value) ?? "");
  }
  return mainText(payload, side) ?? JSON.stringify(payload) ?? "";
}

/** Returns the beginning of {@link previewOf}. */
export function cutPreview(payload: unknown, side: PayloadSide, key?: string): string {
  const text = previewOf(payload, side, key);
  return text.length <= PREVIEW_CHARS ? text : `${text.slice(0, PREVIEW_CHARS).toWellFormed()}…`;
}

/** Returns the text that stands for a payload. Undefined if the payload is neither a conversation nor a text with a known key. */
export function mainText(payload: unknown, side: PayloadSide): string | undefined {
  if (typeof payload === "string") return payload;
  if (Array.isArray(payload)) return isMessages(payload) ? conversationText({ messages: payload }, side) : undefined;
  if (!isObject(payload)) return undefined;
  const conversation = conversationText(payload, side);
  if (conversation !== undefined) return conversation;
  const values = Object.values(payload);
  if (values.length === 1) return typeof values[0] === "string" ? values[0] : mainTextOfList(values[0], side);
  const main = MAIN_KEYS[side].find((key) => typeof payload[key] === "string" && payload[key] !== "");
  return main === undefined ? undefined : (payload[main] as string);
}

const mainTextOfList = (value: unknown, side: PayloadSide): string | undefined =>
  Array.isArray(value) ? mainText(value, side) : undefined;

/** A payload with one of these keys, or with the role of a message, is a conversation. */
const CONVERSATIONS = ["messages", "generations", "choices"];

/** Keys that lead to the text of a message in the formats of LangChain, OpenAI, Anthropic and OpenTelemetry. */
const CONTENTS = [...CONVERSATIONS, "message", "kwargs", "content", "parts", "text"];

/** Fills about two lines of a table cell in the UI. */
const PREVIEW_CHARS = 200;

/** The maximum number of items of a list that are searched for text, from the end. */
const MAX_ITEMS = 20;
const MAX_DEPTH = 8;

const USER = /^(user|human|HumanMessage(Chunk)?)$/;
const MODEL = /^(assistant|ai|model|AIMessage(Chunk)?)$/;
const ROLES = /^(user|human|assistant|ai|model|system|developer|tool|function|\w+Message(Chunk)?)$/;

/** Returns the last text of the side's role, or the last text of any message. */
function conversationText(payload: Fields, side: PayloadSide): string | undefined {
  const isConversation = CONVERSATIONS.some((key) => Array.isArray(payload[key])) || typeof payload.role === "string";
  if (!isConversation) return undefined;
  return lastText(payload, 0, side === "inputs" ? USER : MODEL) ?? lastText(payload, 0, undefined);
}

function lastText(value: unknown, depth: number, wanted: RegExp | undefined): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (depth > MAX_DEPTH || typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return firstText(value.slice(-MAX_ITEMS).reverse(), depth, wanted);
  const fields = value as Fields;
  const role = roleOf(fields);
  if (wanted && role !== undefined && !wanted.test(role)) return undefined;
  const texts = CONTENTS.map((key) => fields[key]);
  // The contents of a message with a role have no other roles, for example the blocks of an Anthropic message.
  return firstText(texts, depth, role === undefined ? wanted : undefined) ?? calledTools(fields);
}

function firstText(values: readonly unknown[], depth: number, wanted: RegExp | undefined): string | undefined {
  for (const value of values) {
    // With a wanted role, a text counts only inside of a message that has the role.
    const text = wanted && typeof value === "string" ? undefined : lastText(value, depth + 1, wanted);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** Returns the role of a message, its LangChain type, or the class name of a serialized message. */
function roleOf({ role, type, lc, id }: Fields): string | undefined {
  if (lc === 1 && Array.isArray(id)) return String(id.at(-1));
  return [role, type].find((name): name is string => typeof name === "string" && ROLES.test(name));
}

/** The names of the tools that a message without text calls. */
function calledTools({ tool_calls }: Fields): string | undefined {
  if (!Array.isArray(tool_calls)) return undefined;
  const names = tool_calls
    .filter(isObject)
    .map((call) => call.name ?? (isObject(call.function) ? call.function.name : ""));
  return names.filter((name) => typeof name === "string" && name !== "").join(", ") || undefined;
}

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isMessages = (list: readonly unknown[]): boolean =>
  list.length > 0 && list.every((item) => isObject(item) && roleOf(item) !== undefined);
