import { RequestMalformedError } from "@a2a-js/sdk/errors";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import type { A2aPart, MessageSend } from "../../contract/a2a.ts";
import type { AgUiPart } from "../../contract/ag-ui.ts";
import type { Interrupt } from "../../contract/records.ts";
import { type GraphMessage, parsed, toGraphMessage } from "../ag-ui/messages.ts";

type UserMessage = MessageSend["message"];

/** Returns the input of the graph for a message. */
export function inputOf({ messageId, parts }: UserMessage): { messages: GraphMessage[] } {
  const contents = parts.map(toAgUiPart);
  const [first] = contents;
  const content = contents.length === 1 && first?.type === "text" ? first.text : contents;
  return { messages: toGraphMessage({ id: messageId, role: "user", content }) };
}

function toAgUiPart({ content, mediaType }: A2aPart): AgUiPart {
  switch (content.$case) {
    case "text":
      return { type: "text", text: content.value };
    case "data":
      return { type: "text", text: JSON.stringify(content.value) };
    case "url":
      return { type: "binary", mimeType: mediaType, url: content.value };
    case "raw": {
      const data = Buffer.from(content.value).toString("base64");
      return { type: "binary", mimeType: mediaType || "application/octet-stream", data };
    }
  }
}

/** Returns the answers of a message to open interrupts, by their IDs. */
export function answerOf({ parts }: UserMessage, interrupts: readonly Interrupt[]): JsonObject {
  const answer = answerIn(parts);
  const [first, ...others] = interrupts;
  const ids = interrupts.map(({ id }) => id);
  if (isObject(answer) && Object.keys(answer).length > 0 && Object.keys(answer).every((key) => ids.includes(key)))
    return answer;
  if (first && others.length === 0) return { [first.id]: answer };
  throw new RequestMalformedError(
    `params.message.parts: the task has several open interrupts (IDs: ${ids.join(", ")}). Send a data part with an object that maps interrupt IDs to answers.`,
  );
}

/** Returns the value of a data part, or that of texts, which may be JSON. */
function answerIn(parts: readonly A2aPart[]): unknown {
  const contents = parts.map(({ content }) => content);
  const [first] = contents;
  if (first?.$case === "data" && contents.length === 1) return first.value;
  const texts = contents.map((content) => {
    if (content.$case === "text") return content.value;
    throw new RequestMalformedError("params.message.parts: an answer must consist of text parts or of one data part");
  });
  return parsed(texts.join("\n"));
}
