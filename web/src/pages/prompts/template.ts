/** A part of a message: text with variables, or a value that is shown as JSON, such as an image. */
export type TemplatePart = { text: string; format: string | undefined } | { json: unknown };

export interface TemplateMessage {
  /** For example `System`. `Messages` for a placeholder, `Template` for a prompt without roles. */
  role: string;
  parts: TemplatePart[];
}

export interface Template {
  messages: TemplateMessage[];
  variables: string[];
  /** The variables whose values are lists of messages. */
  placeholders: string[];
  /** The JSON schema of structured outputs. */
  schema?: unknown;
  /** The model with which the prompt was committed. */
  model?: unknown;
}

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const classOf = (value: unknown): string => (isObject(value) && Array.isArray(value.id) ? String(value.id.at(-1)) : "");
const kwargsOf = (value: unknown): Fields => (isObject(value) && isObject(value.kwargs) ? value.kwargs : {});

/** Parses a prompt from the JSON of a LangChain object. Returns undefined if the object is not a prompt. */
export function templateOf(manifest: unknown): Template | undefined {
  const kwargs = kwargsOf(manifest);
  if (classOf(manifest) === "RunnableSequence") {
    const template = templateOf(kwargs.first);
    return template && { ...template, model: kwargs.last };
  }
  const variables = Array.isArray(kwargs.input_variables) ? kwargs.input_variables.map(String) : [];
  if (typeof kwargs.template === "string")
    return { messages: [{ role: "Template", parts: partsOf(manifest) }], variables, placeholders: [] };
  if (!Array.isArray(kwargs.messages)) return undefined;
  const placeholders = kwargs.messages.flatMap((message) =>
    classOf(message) === PLACEHOLDER ? [String(kwargsOf(message).variable_name)] : [],
  );
  return { messages: kwargs.messages.map(messageOf), variables, placeholders, schema: kwargs.schema_ ?? kwargs.schema };
}

const PLACEHOLDER = "MessagesPlaceholder";
const ROLE = /^(System|Human|AI|Tool|Function|Chat)Message(PromptTemplate)?$/;

function messageOf(message: unknown): TemplateMessage {
  const kwargs = kwargsOf(message);
  const name = classOf(message);
  if (name === PLACEHOLDER) {
    const optional = kwargs.optional === true ? " (optional)" : "";
    return { role: "Messages", parts: [{ text: `{${kwargs.variable_name}}${optional}`, format: "f-string" }] };
  }
  const role = ROLE.exec(name)?.[1];
  if (!role) return { role: name || "Message", parts: [{ json: message }] };
  const parts = [kwargs.prompt ?? kwargs.content].flat().flatMap(partsOf);
  const calls = Array.isArray(kwargs.tool_calls) && kwargs.tool_calls.length > 0 ? [{ json: kwargs.tool_calls }] : [];
  return { role: role === "Chat" ? String(kwargs.role) : role, parts: [...parts, ...calls] };
}

/** Returns the parts of a template, or of message content without variables. */
function partsOf(part: unknown): TemplatePart[] {
  if (typeof part === "string") return part === "" ? [] : [{ text: part, format: undefined }];
  const { template, template_format = "f-string" } = kwargsOf(part);
  const text = isObject(template) && template.type === "text" ? template.text : template;
  if (typeof text === "string") return [{ text, format: String(template_format) }];
  if (isObject(part) && part.type === "text" && typeof part.text === "string")
    return [{ text: part.text, format: undefined }];
  return [{ json: template ?? part }];
}

/** Matches the variables of each template format and, in f-strings, the literal braces `{{` and `}}`. */
const TOKENS: Record<string, RegExp> = {
  "f-string": /\{\{|\}\}|\{[^{}]*\}/g,
  mustache: /\{\{\{?[^{}]*\}?\}\}/g,
  jinja2: /\{\{[^{}]*\}\}/g,
};

/** Divides a text into pieces; the pieces with odd indexes are variables. */
export function piecesOf(text: string, format: string | undefined): string[] {
  const tokens = format === undefined ? undefined : TOKENS[format];
  const pieces = [""];
  let end = 0;
  for (const { 0: token, index } of tokens ? text.matchAll(tokens) : []) {
    if (format === "f-string" && (token === "{{" || token === "}}")) continue;
    pieces[pieces.length - 1] += text.slice(end, index);
    pieces.push(token, "");
    end = index + token.length;
  }
  pieces[pieces.length - 1] += text.slice(end);
  return pieces;
}
