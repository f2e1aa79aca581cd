import { shellQuote } from "../../ui/format.ts";

/** JSON Schema keywords that determine the example input. */
interface Schema {
  properties?: Record<string, { type?: unknown }>;
  required?: unknown;
}

/** Builds a curl command that runs an assistant once and prints the result. */
export function curlOf({
  address,
  assistant: { graph_id, assistant_id, metadata },
  schema,
  needsKey,
}: {
  address: string;
  assistant: { graph_id: string; assistant_id: string; metadata: Record<string, unknown> };
  schema: object | null | undefined;
  /** Whether the command sends an API key. */
  needsKey: boolean;
}): string {
  // A graph's default assistant can be addressed by the graph's name.
  const name = metadata.created_by === "system" ? graph_id : assistant_id;
  const body = JSON.stringify({ assistant_id: name, input: exampleInput(schema ?? {}) });
  const lines = [
    `curl -s ${address}/runs/wait`,
    ...(needsKey ? ['-H "x-api-key: $THREADMILL_API_KEY"'] : []),
    "-H 'content-type: application/json'",
    `-d ${shellQuote(body)}`,
  ];
  return lines.join(" \\\n  ");
}

const MESSAGES = { messages: [{ role: "user", content: "Hello!" }] };

/** Creates an example input: a message if the graph accepts messages or has no input fields, otherwise values for string fields. */
function exampleInput({ properties = {}, required }: Schema): object {
  if ("messages" in properties || Object.keys(properties).length === 0) return MESSAGES;
  const texts = Object.keys(properties).filter((name) => properties[name]?.type === "string");
  const needed = Array.isArray(required) ? texts.filter((name) => required.includes(name)) : [];
  const [first] = texts;
  const filled = needed.length > 0 ? needed : first === undefined ? [] : [first];
  return Object.fromEntries(filled.map((name) => [name, "Hello!"]));
}
