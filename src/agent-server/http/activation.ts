import type { App } from "../../platform/http/route.ts";
import type { Activation } from "../activation.ts";

export interface ActivationOptions {
  activation: Activation;
  /** Set in an instance of a deployment. */
  rollout: number | undefined;
}

/**
 * What the control plane tells an instance once its roll-out has the traffic. It names no roll-out: whoever gets here through the
 * router reaches instances that have been told already.
 */
export function serveActivation(app: App, { activation, rollout }: ActivationOptions): void {
  if (rollout === undefined) return;
  app.post("/internal/activation", async (context) => {
    await activation.activate();
    return context.body(null, 204);
  });
}
