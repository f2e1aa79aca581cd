const REDACTED = "[redacted]";

/** Fields whose strings and objects are never logged. Only the end of the name is matched, so `token_id` is logged. */
const SECRET_NAME =
  /(authorization|cookie|(api|service|encryption|private)[-_]?key|token|secret|password|passphrase|verifier|assertion|(authorization|device)_code)s?$/i;

/** Credentials of a request, the password of a URL, fields of a form or a query. */
const SECRET_TEXTS: [RegExp, string][] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{4,}/gi, `$1 ${REDACTED}`],
  [/(\w:\/\/[^\s:/@]*):[^\s/@]+@/g, `$1:${REDACTED}@`],
  [
    /\b(access_token|refresh_token|id_token|token|client_secret|code_verifier|code|state|assertion|password)=[^\s&"']+/gi,
    `$1=${REDACTED}`,
  ],
];

const MAX_DEPTH = 6;

/** Every match of a pattern above contains one of these characters. IDs and statuses contain none, so they are not searched. */
const MAY_CONTAIN_SECRET = /[\s:=]/;

const redactText = (text: string): string =>
  MAY_CONTAIN_SECRET.test(text)
    ? SECRET_TEXTS.reduce((rest, [pattern, replacement]) => rest.replaceAll(pattern, replacement), text)
    : text;

/** Returns a copy of a value without secrets, as plain data. Errors become objects with type, message, stack and other fields. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) return "[deep]";
  if (value instanceof Error) return redactFields(errorFields(value), depth);
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (value instanceof Headers || value instanceof Map) return redactFields(Object.fromEntries(value), depth);
  if ("toJSON" in value && typeof value.toJSON === "function") return redact(value.toJSON(), depth + 1);
  return isPlainObject(value) ? redactFields(value, depth) : `[${value.constructor?.name}]`;
}

/** Other objects, such as sockets, are not copied, because they may reference large parts of the process. */
const isPlainObject = (value: object): boolean => [Object.prototype, null].includes(Object.getPrototypeOf(value));

function errorFields(error: Error): object {
  // Postgres writes whole rows into the detail of its errors.
  const { name, message, stack, cause, detail: _, ...fields } = error as Error & { detail?: unknown };
  return { ...fields, type: name, message, stack, ...(cause !== undefined && { cause }) };
}

const redactFields = (fields: object, depth: number): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, isSecret(name, value) ? REDACTED : redact(value, depth + 1)]),
  );

const isSecret = (name: string, value: unknown): boolean =>
  SECRET_NAME.test(name) && (typeof value === "string" || (typeof value === "object" && value !== null));

/** Escapes bidirectional and control characters, except tab and newline: a terminal would interpret them. The escapes are valid in JSON. */
export const escapeControlCharacters = (text: string): string =>
  text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
