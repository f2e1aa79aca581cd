import { pino } from "pino";

/** Structured logging, one JSON object a line on standard error. */
export type Log = Pick<pino.Logger, "debug" | "info" | "warn" | "error">;

/** What never belongs in a log, whoever passes it. */
const SECRETS = ["authorization", "x-api-key", "cookie", "token", "secret", "password"];

/** @param level debug, info, warn, error or silent */
export function createLog(level: string): Log {
  const paths = SECRETS.flatMap((name) => [`["${name}"]`, `*["${name}"]`]);
  return pino({ level, base: null, redact: { paths, censor: "[redacted]" } }, pino.destination({ fd: 2, sync: true }));
}
