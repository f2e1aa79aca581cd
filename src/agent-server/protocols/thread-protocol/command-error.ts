import { ApiError } from "../../../platform/errors.ts";
import type { ProtocolErrorCode, ProtocolResponse } from "../../contract/thread-protocol.ts";
import type { StreamedEvent } from "../../engine/index.ts";

/** The failure of a command, which its response contains. */
export class CommandError extends Error {
  readonly code: ProtocolErrorCode;

  constructor(code: ProtocolErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

interface Schema<T> {
  safeParse(
    value: unknown,
    options: { reportInput: true },
  ): { success: boolean; data?: T; error?: { issues: { path: PropertyKey[]; message: string }[] } };
}

/** @throws CommandError invalid_argument */
export function parsed<T>(schema: Schema<T>, value: unknown): T {
  const { success, data, error } = schema.safeParse(value, { reportInput: true });
  if (success) return data as T;
  const reasons = (error?.issues ?? [])
    .slice(0, 3)
    .map(({ path, message }) => [path.join("."), message].filter(Boolean).join(": "));
  throw new CommandError("invalid_argument", reasons.join("; "));
}

const CODES: Partial<Record<string, ProtocolErrorCode>> = {
  run_not_found: "no_such_run",
  checkpoint_not_found: "no_such_checkpoint",
};

/** Returns the response to a failed command. Details of errors that the request has not caused are only in the log. */
export function errorResponse(id: number | null, error: unknown): ProtocolResponse {
  const { code, message } = toCommandError(error);
  return { type: "error", id, error: code, message };
}

/** Returns the event for an error that ends a stream and belongs to no command. */
export const errorEvent = (error: CommandError): StreamedEvent => ({
  event: "error",
  data: JSON.stringify(errorResponse(null, error)),
});

function toCommandError(error: unknown): CommandError {
  if (error instanceof CommandError) return error;
  if (!(error instanceof ApiError)) return new CommandError("unknown_error", new ApiError("internal").message);
  if (error.status >= 500) return new CommandError("unknown_error", error.message);
  if (error.status === 401 || error.status === 403) return new CommandError("permission_denied", error.message);
  return new CommandError(CODES[error.code] ?? "invalid_argument", error.message);
}
