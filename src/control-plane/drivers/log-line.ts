import type { InstanceSpec, LogLine } from "./driver.ts";

/** Longer lines are truncated. */
const MAX_LENGTH = 32_768;

const LEVELS: Readonly<Record<number, LogLine["level"]>> = {
  10: "DEBUG",
  20: "DEBUG",
  30: "INFO",
  40: "WARNING",
  50: "ERROR",
  60: "CRITICAL",
};

/** Parses a line of output: a JSON line of Threadmill's log, or any other text. Returns undefined for a blank line. */
export function readLogLine(text: string, at: number): LogLine | undefined {
  const line = text.trimEnd();
  if (line === "") return undefined;
  return readOwnLine(line) ?? { at, level: "INFO", message: cut(withoutColors(line)) };
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

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminal color codes start with the escape character
const withoutColors = (text: string): string => text.replace(/\u001b\[[\d;]*[A-Za-z]/g, "");

export type LogReceiver = Pick<InstanceSpec, "log" | "logsPersisted">;

/** Sends lines and waits until they are stored. On failure, aborts `reading`; the next call of `ensure` sends the lines again. */
export async function sendLines(
  lines: readonly { text: string; at_ms: number }[],
  receiver: LogReceiver,
  reading: AbortController,
): Promise<void> {
  for (const { text, at_ms } of lines) {
    const line = readLogLine(text, at_ms);
    if (line) receiver.log(line);
  }
  try {
    await receiver.logsPersisted?.();
  } catch (error) {
    reading.abort();
    throw error;
  }
}

const MAX_TAIL_LINES = 5;
const MAX_TAIL_LENGTH = 1_000;

/** Returns the last lines of a program's output, which usually explain why it ended; an empty string if there is no output. */
export function stderrTail(lines: readonly string[]): string {
  const messages = lines.map((line) => readLogLine(line, 0)?.message ?? "").filter((line) => line !== "");
  return messages.slice(-MAX_TAIL_LINES).join("\n").slice(-MAX_TAIL_LENGTH);
}

/** Returns the last error message of the program, without the warnings before it. */
export const lastErrorIn = (output: string): string => output.split(/^error: /m).at(-1) ?? output;

const NEWLINE = 0x0a;

/** Longer lines are split. */
const MAX_BYTES = 64 * 1024;

/** Splits a byte stream into lines. It buffers bytes, because a character can span two chunks. */
export class LineSplitter {
  #rest: Buffer = Buffer.alloc(0);

  /** Number of buffered bytes of the incomplete last line. */
  get pending(): number {
    return this.#rest.length;
  }

  add(piece: Uint8Array): string[] {
    let bytes = Buffer.concat([this.#rest, piece]);
    const lines: string[] = [];
    for (;;) {
      const newline = bytes.indexOf(NEWLINE);
      const end = newline === -1 ? (bytes.length > MAX_BYTES ? MAX_BYTES : -1) : newline;
      if (end === -1) break;
      lines.push(bytes.toString("utf8", 0, end));
      bytes = bytes.subarray(newline === -1 ? end : end + 1);
    }
    this.#rest = Buffer.from(bytes);
    return lines;
  }

  end(): string[] {
    const rest = this.#rest.toString("utf8");
    this.#rest = Buffer.alloc(0);
    return rest === "" ? [] : [rest];
  }
}
