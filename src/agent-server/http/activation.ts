import type { App } from "../../platform/http/route.ts";
import type { Activation } from "../activation.ts";

export interface ActivationOptions {
  activation: Activation;
  /** Defined only in an instance of a deployment. */
  rollout: number | undefined;
}

/**
 * The control plane calls this route after it has routed requests to the instance's rollout. A user who calls it through the router
 * reaches only the active rollout, so the call changes nothing.
 */
export function serveActivation(app: App, { activation, rollout }: ActivationOptions): void {
  if (rollout === undefined) return;
  app.post("/internal/activation", async (context) => {
    await activation.activate();
    return context.body(null, 204);
  });
}
