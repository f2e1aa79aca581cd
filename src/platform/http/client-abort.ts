import type { Context } from "hono";
import { ApiError } from "../errors.ts";
import type { Env } from "./route.ts";

/** Aborted when the client closes the connection or loses its access. */
export interface ClientAbort {
  signal: AbortSignal;
  abort(reason: unknown): void;
  /** Aborts when the access of the caller ends, until the returned function is called. */
  watchAccess(): () => void;
}

export function clientAbortOf(context: Context<Env>): ClientAbort {
  const controller = new AbortController();
  const abort = (reason: unknown) => controller.abort(reason);
  const { signal } = context.req.raw;
  if (signal.aborted) abort(signal.reason);
  else signal.addEventListener("abort", () => abort(signal.reason), { once: true });
  return { signal: controller.signal, abort, watchAccess: () => context.get("onAccessEnd")(abort) };
}

/** Returns the error that ends a response whose caller has lost access; undefined if it was aborted for another reason. */
export function accessEndError({ signal: { reason } }: Pick<ClientAbort, "signal">) {
  return reason instanceof ApiError ? { error: "Unauthorized", message: reason.message } : undefined;
}
