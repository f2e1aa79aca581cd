import { pino } from "pino";
import { escapeControlCharacters, redact } from "./sanitize-output.ts";

export type Log = Pick<pino.Logger, "debug" | "info" | "warn" | "error">;

/** The level of pino from which lines are written at once. */
const WARN = 40;

/**
 * Logs one JSON object per line on standard error. Lines below warn are written once per turn of the event loop: a write to a pipe takes
 * 10 to 50 µs, and a busy service logs two lines for each run.
 */
export function createLog(level: string): Log {
  const output = pino.destination({ fd: 2, sync: true });
  // A full disk or a closed terminal must not end the service. pino ignores only broken pipes.
  output.on("error", () => undefined);
  let pending = "";
  let timer: NodeJS.Immediate | undefined;
  const flush = () => {
    clearImmediate(timer);
    process.off("exit", flush);
    timer = undefined;
    const text = pending;
    pending = "";
    output.write(text);
  };
  const hooks: pino.LoggerOptions["hooks"] = {
    // pino's own redaction matches only paths of a fixed depth and does not search inside texts.
    logMethod(args, write, level_value) {
      write.apply(this, args.map((part: unknown) => redact(part)) as typeof args);
      if (level_value >= WARN) flush();
    },
  };
  const stream = {
    write(line: string) {
      // A terminal interprets characters that JSON does not escape.
      pending += escapeControlCharacters(line);
      if (timer) return;
      timer = setImmediate(flush);
      process.once("exit", flush);
    },
  };
  return pino({ level, base: null, hooks }, stream);
}
