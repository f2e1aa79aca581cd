import { ApiError } from "../../platform/errors.ts";
import type { App } from "../../platform/http/route.ts";
import type { Activation } from "../activation.ts";
import type { TraceOutbox } from "../engine/index.ts";

export interface InternalRoutesOptions {
  activation: Activation;
  /** Defined only in an instance of a deployment. */
  rollout: number | undefined;
  /** Defined only in an instance of a deployment. */
  trace_outbox: TraceOutbox | undefined;
}

const MAX_WAIT_MS = 25_000;

/** The routes that the control plane calls in an instance of a deployment. */
export function serveInternal(app: App, { activation, rollout, trace_outbox }: InternalRoutesOptions): void {
  // Called after the control plane has routed requests to the instance's rollout. A user who calls it through the router reaches only
  // the active rollout, so the call changes nothing.
  if (rollout !== undefined)
    app.post("/internal/activation", async (context) => {
      await activation.activate();
      return context.body(null, 204);
    });
  if (trace_outbox) serveTraceOutbox(app, trace_outbox);
}

/**
 * `POST /internal/traces/wait`: the control plane fetches the traces of this instance. `stored` or `refused` in the query acknowledges an
 * entry. Responds 200 with the next entry, or 204 if there is none within 25 s.
 */
function serveTraceOutbox(app: App, trace_outbox: TraceOutbox): void {
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
