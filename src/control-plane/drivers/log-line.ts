import type { LogLine } from "./driver.ts";

/** Longer lines are cut. */
const MAX_LENGTH = 32_768;

const LEVELS: Readonly<Record<number, LogLine["level"]>> = {
  10: "DEBUG",
  20: "DEBUG",
  30: "INFO",
  40: "WARNING",
  50: "ERROR",
  60: "CRITICAL",
};

/** A line that an instance wrote: one of Threadmill's own log, in JSON, or whatever users' code prints. Undefined for a blank one. */
export function readLogLine(text: string, at: number): LogLine | undefined {
  const line = text.trimEnd();
  if (line === "") return undefined;
  return readOwnLine(line) ?? { at, level: "INFO", message: cut(withoutColours(line)) };
}

function readOwnLine(line: string): LogLine | undefined {
  if (!line.startsWith('{"level":')) return undefined;
  try {
    const { level, time, msg, run_id, ...rest } = JSON.parse(line) as Record<string, unknown>;
    if (typeof level !== "number" || typeof time !== "number") return undefined;
    const details = Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest)}` : "";
    const message = cut(`${typeof msg === "string" ? msg : ""}${details}`.trim());
    return { at: time, level: LEVELS[level] ?? "INFO", message, ...(typeof run_id === "string" && { run_id }) };
  } catch {
    return undefined;
  }
}

const cut = (text: string): string => (text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)} ...` : text);

// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character begins what colours a terminal
const withoutColours = (text: string): string => text.replace(/\u001b\[[\d;]*[A-Za-z]/g, "");
