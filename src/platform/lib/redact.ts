/** What is written in the place of a secret. */
const CENSORED = "[redacted]";

/**
 * Names whose values never belong in a log, whoever passes them: the last word counts (`x-api-key`, `client_secret`,
 * `refreshToken`), in any case, so `token_id` stays readable.
 */
const SECRET_NAME =
  /(authorization|cookie|(api|service|encryption|private)[-_]?key|token|secret|password|passphrase|verifier|assertion|(authorization|device)_code)s?$/i;

/** Secrets within a text: credentials of a request, the password of a URL, a field of a form or of a query, a sealed text. */
const SECRET_TEXTS: [RegExp, string][] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{4,}/gi, `$1 ${CENSORED}`],
  [/(\w:\/\/[^\s:/@]*):[^\s/@]+@/g, `$1:${CENSORED}@`],
  [
    /\b(access_token|refresh_token|id_token|token|client_secret|code_verifier|code|state|assertion|password)=[^\s&"']+/gi,
    `$1=${CENSORED}`,
  ],
];

/** Deeper there is nothing that a log is read for. */
const DEEPEST = 6;

const redactText = (text: string): string =>
  SECRET_TEXTS.reduce((rest, [pattern, censored]) => rest.replaceAll(pattern, censored), text);

/** A copy without secrets, as plain data. Errors become their type, message, stack and fields, which JSON would leave out. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > DEEPEST) return "[deep]";
  if (value instanceof Error) return redactFields(fieldsOf(value), depth);
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (value instanceof Headers || value instanceof Map) return redactFields(Object.fromEntries(value), depth);
  if ("toJSON" in value && typeof value.toJSON === "function") return redact(value.toJSON(), depth + 1);
  return isPlain(value) ? redactFields(value, depth) : `[${value.constructor?.name}]`;
}

/** Sockets and the like hold half of the process. */
const isPlain = (value: object): boolean => [Object.prototype, null].includes(Object.getPrototypeOf(value));

function fieldsOf(error: Error): object {
  // Postgres puts whole rows into the detail of its errors.
  const { name, message, stack, cause, detail: _, ...fields } = error as Error & { detail?: unknown };
  return { ...fields, type: name, message, stack, ...(cause !== undefined && { cause }) };
}

const redactFields = (fields: object, depth: number): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, isSecret(name, value) ? CENSORED : redact(value, depth + 1)]),
  );

/** A number or a flag is never one. */
const isSecret = (name: string, value: unknown): boolean =>
  SECRET_NAME.test(name) && (typeof value === "string" || (typeof value === "object" && value !== null));
