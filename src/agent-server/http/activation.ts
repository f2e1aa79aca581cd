import type { App } from "../../platform/http/route.ts";
import type { Activation } from "../activation.ts";

export interface ActivationOptions {
  activation: Activation;
  /** Set in an instance of a deployment. */
  rollout: number | undefined;
}

/**
 * The control plane calls this route once requests are routed to the instance's rollout. A call activates only that rollout, and the
 * router forwards requests to no other one, so a user who calls this route through the router changes nothing.
 */
export function serveActivation(app: App, { activation, rollout }: ActivationOptions): void {
  if (rollout === undefined) return;
  app.post("/internal/activation", async (context) => {
    await activation.activate();
    return context.body(null, 204);
  });
}
