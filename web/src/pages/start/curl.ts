/** The part of a JSON schema that says which fields an input has. */
interface Schema {
  properties?: Record<string, { type?: unknown }>;
  required?: unknown;
}

/** A command that runs an assistant once and prints what it answers. */
export function curlOf({
  address,
  assistant: { graph_id, assistant_id, metadata },
  schema,
  isClosed,
}: {
  address: string;
  assistant: { graph_id: string; assistant_id: string; metadata: Record<string, unknown> };
  schema: object | null | undefined;
  /** Requests need a key. */
  isClosed: boolean;
}): string {
  // The default assistant of a graph goes by the name of the graph.
  const name = metadata.created_by === "system" ? graph_id : assistant_id;
  const body = JSON.stringify({ assistant_id: name, input: inputFor(schema ?? {}) });
  const lines = [
    `curl -s ${address}/runs/wait`,
    ...(isClosed ? ['-H "x-api-key: $THREADMILL_API_KEY"'] : []),
    "-H 'content-type: application/json'",
    `-d '${body.replaceAll("'", "'\\''")}'`,
  ];
  return lines.join(" \\\n  ");
}

const MESSAGES = { messages: [{ role: "user", content: "Hello!" }] };

/** Something to start with: a message for what has messages, otherwise a text for each field that takes one. */
function inputFor({ properties = {}, required }: Schema): object {
  if ("messages" in properties || Object.keys(properties).length === 0) return MESSAGES;
  const texts = Object.keys(properties).filter((name) => properties[name]?.type === "string");
  const needed = Array.isArray(required) ? texts.filter((name) => required.includes(name)) : [];
  const [first] = texts;
  const filled = needed.length > 0 ? needed : first === undefined ? [] : [first];
  return Object.fromEntries(filled.map((name) => [name, "Hello!"]));
}
