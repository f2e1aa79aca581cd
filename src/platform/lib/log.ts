import { pino } from "pino";
import { printable } from "./printable.ts";
import { redact } from "./redact.ts";

/** Structured logging, one JSON object a line on standard error. */
export type Log = Pick<pino.Logger, "debug" | "info" | "warn" | "error">;

/** @param level debug, info, warn, error or silent */
export function createLog(level: string): Log {
  const hooks: pino.LoggerOptions["hooks"] = {
    // Secrets are looked for by name at any depth; pino's own redaction knows exact paths in one spelling.
    logMethod(args, write) {
      write.apply(this, args.map((part: unknown) => redact(part)) as typeof args);
    },
  };
  const output = pino.destination({ fd: 2, sync: true });
  // JSON escapes fewer characters than a terminal obeys.
  return pino({ level, base: null, hooks }, { write: (line: string) => output.write(printable(line)) });
}
