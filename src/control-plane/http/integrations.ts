import type { App } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import { controlRoutes } from "../contract/routes.ts";

/** Repositories are named by their URL, so nothing has to be installed at GitHub: clients find empty lists. */
export function serveIntegrations(app: App, mounts: readonly string[]): void {
  const routes = controlRoutes.integrations;
  serveAt(app, mounts, routes.listInstallations, ({ context }) => context.json([]));
  serveAt(app, mounts, routes.listRepositories, ({ context }) => context.json([]));
  serveAt(app, mounts, routes.listForgeInstallations, ({ context }) => context.json([]));
  serveAt(app, mounts, routes.listForgeRepositories, ({ context }) => context.json([]));
}
