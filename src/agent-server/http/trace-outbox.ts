import { ApiError } from "../../platform/errors.ts";
import type { App } from "../../platform/http/route.ts";
import type { TraceOutbox } from "../engine/index.ts";

export interface TraceOutboxOptions {
  /** Defined only in an instance of a deployment. */
  trace_outbox: TraceOutbox | undefined;
}

const MAX_WAIT_MS = 25_000;

/**
 * `POST /internal/traces/wait`: the control plane fetches the traces of this instance. `stored` or `refused` in the query acknowledges an
 * entry. Responds 200 with the next entry, or 204 if there is none within 25 s.
 */
export function serveTraceOutbox(app: App, { trace_outbox }: TraceOutboxOptions): void {
  if (!trace_outbox) return;
  const path = "/internal/traces/wait";
  app.post(path, async (context) => {
    const { req } = context;
    // Requests of users have the router's header. Users must not be able to take entries that are meant for the control plane.
    if (req.header("x-threadmill-user") !== undefined) throw new ApiError("route_not_found", { method: "POST", path });
    const { stored, refused } = req.query();
    const entry_id = stored ?? refused;
    const acknowledged = entry_id === undefined ? undefined : { entry_id, is_refused: stored === undefined };
    const entry = await trace_outbox.next(acknowledged, MAX_WAIT_MS);
    if (!entry) return context.body(null, 204);
    return context.body(entry.body, 200, { "x-trace-entry": entry.id, "x-trace-kind": entry.kind });
  });
}
