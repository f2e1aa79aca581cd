import type { Context } from "hono";
import { ApiError } from "../errors.ts";
import type { Env } from "./route.ts";

/** Aborted when the client of a request is gone, also because what let it in has ended. */
export interface Gone {
  signal: AbortSignal;
  abort(reason: unknown): void;
  /** From now on it is aborted, too, when what let the client in has ended, until the returned function is called. */
  watchAccess(): () => void;
}

export function goneWith(context: Context<Env>): Gone {
  const gone = new AbortController();
  const abort = (reason: unknown) => gone.abort(reason);
  const { signal } = context.req.raw;
  if (signal.aborted) abort(signal.reason);
  else signal.addEventListener("abort", () => abort(signal.reason), { once: true });
  return { signal: gone.signal, abort, watchAccess: () => context.get("onAccessEnd")(abort) };
}

/** What is said in place of the rest when what let the client in has ended. */
export function endOfAccess({ signal: { reason } }: Pick<Gone, "signal">) {
  return reason instanceof ApiError ? { error: "Unauthorized", message: reason.message } : undefined;
}
