import type { Context } from "hono";
import { ApiError } from "../errors.ts";
import type { Env } from "./route.ts";
import { type DirectBody, directBodyOf } from "./streamed-body.ts";

/** `signal` is aborted when the client closes the connection or, with `watchAccess`, when the caller loses access. */
export interface ClientAbort {
  signal: AbortSignal;
  abort(reason: unknown): void;
  /** From this call on, the signal is aborted when the caller's access ends. The returned function cancels this. */
  watchAccess(): () => void;
  /** See {@link directBodyOf}. */
  direct: DirectBody | undefined;
}

/** No closure captures the context, which has 9 KB and would be retained while the response is open. */
export function clientAbortOf(context: Context<Env>): ClientAbort {
  const onAccessEnd = context.get("onAccessEnd");
  const controller = new AbortController();
  const abort = (reason: unknown) => controller.abort(reason);
  const { signal } = context.req.raw;
  if (signal.aborted) abort(signal.reason);
  else signal.addEventListener("abort", () => abort(signal.reason), { once: true });
  return {
    signal: controller.signal,
    abort,
    watchAccess: () => onAccessEnd(abort),
    direct: directBodyOf(context.req.raw),
  };
}

/** Returns the error to send at the end of a response if the caller has lost access; otherwise undefined. */
export function accessEndError({ signal: { reason } }: Pick<ClientAbort, "signal">) {
  return reason instanceof ApiError ? { error: "Unauthorized", message: reason.message } : undefined;
}
