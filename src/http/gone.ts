import type { Context } from "hono";

/** Aborted when the client of this request is gone. */
export function goneWith(context: Context): AbortController {
  const gone = new AbortController();
  const { signal } = context.req.raw;
  if (signal.aborted) gone.abort(signal.reason);
  else signal.addEventListener("abort", () => gone.abort(signal.reason), { once: true });
  return gone;
}
