import type { Router } from "./router.ts";

/** Where no traffic of deployments comes by: nothing is sent anywhere, and nothing is in flight. */
export const noRouter: Router = {
  activate: () => undefined,
  deactivate: () => undefined,
  inFlight: () => 0,
};
