import { join } from "node:path";
import { keySourceOf } from "./access/encryption/key-source.ts";
import { openKeyRing } from "./access/encryption/open-key-ring.ts";
import { noEncryption } from "./access/encryption/seal.ts";
import type { Vault } from "./access/vault.ts";
import { Activation } from "./agent-server/activation.ts";
import { DefaultAssistants } from "./agent-server/assistants/default-assistants.ts";
import { type CatalogContent, GraphCatalog } from "./agent-server/graph-catalog.ts";
import { TypeSchemaReader } from "./agent-server/graph-hosts/type-schemas/reader.ts";
import { Disconnects } from "./agent-server/runs/disconnects.ts";
import { createAccess, openVault, requireAuthentication } from "./app/compose/access.ts";
import { createEngine, fetchAsUser } from "./app/compose/engine.ts";
import { createHttp } from "./app/compose/http.ts";
import { fileOf, openData } from "./app/compose/open-data.ts";
import type { DeploymentFront } from "./app/deployment-front.ts";
import type { Config } from "./config/config.ts";
import type { DeploymentRouter } from "./control-plane/router/deployment-router.ts";
import { createExperimentsService, type ExperimentsOptions } from "./experiments/worker/experiments-service.ts";
import { DEFAULT_TENANT } from "./platform/contract/caller.ts";
import { BodyParser } from "./platform/http/body-parser.ts";
import type { App } from "./platform/http/route.ts";
import type { Log } from "./platform/lib/log.ts";

export { type Listening, listen } from "./app/server.ts";

/** A service that is started but does not listen yet. */
export interface Threadmill {
  fetch(request: Request): Response | Promise<Response>;
  front: DeploymentFront;
  router: DeploymentRouter;
  /** The routes of Hono: `:name` is a path parameter, and method ALL is middleware. */
  routes: readonly { method: string; path: string }[];
  /** Description of the database for users. */
  database: string;
  /** The reasons why graphs could not be loaded, by graph. */
  loaded: Promise<Record<string, string>>;
  /** Reloads the graphs and returns the new failures. Active runs finish with the old graphs. */
  reload(content: CatalogContent): Promise<Record<string, string>>;
  /** Waits for runs to finish, returns the remaining runs to the queue, then closes all parts. */
  stop(): Promise<void>;
}

/** The composition root: creates and starts all parts of the service. */
export async function startThreadmill(config: Config, log: Log): Promise<Threadmill> {
  const keys = config.only ? undefined : keySourceOf(config);
  const { database, close } = await openData(config, synchronousOf(config), log);
  const seal = keys ? await openKeyRing(database, keys, log) : noEncryption;
  await requireAuthentication(config, database);
  const catalog = new GraphCatalog(config);
  const default_assistants = new DefaultAssistants(database, catalog);
  const activation = new Activation({ database, default_assistants, rollout: config.rollout });
  await activation.start();
  let opening: Promise<Vault> | undefined;
  const getVault = () => (opening ??= openVault(config, database, seal, log));
  const served = Promise.withResolvers<App>();
  const fetchAs = fetchAsUser(served.promise, config.mount_prefix);
  const engine = createEngine(config, database, catalog, { vault: getVault, fetchAs }, log);
  await engine.start();
  const loaded = engine.loadFailures.then((failures) => {
    catalog.failures = failures;
    return failures;
  });
  // A caller may ignore `loaded`; its rejection must not end the process.
  loaded.catch(() => undefined);
  const type_schemas = new TypeSchemaReader({
    project_dir: config.project_dir,
    timeout_ms: config.schema_timeout_ms,
    cache_dir: join(config.data_dir, "type-schemas"),
    log,
  });
  const context = { database, engine, catalog, type_schemas };
  const disconnects = new Disconnects({
    cancel: (run) => engine.cancellations.cancelIfActive(run),
    grace_ms: config.disconnect_grace_ms,
    log,
  });
  const experiments = createExperimentsService({ database: experimentsDatabase(config), log_level: config.log_level });
  // The vault, the control plane and the HTTP interface are imported while the graph hosts load the graphs on another core.
  const vault = await getVault();
  const { openControlPlane } = await import("./app/compose/control-plane.ts");
  const control_plane = await openControlPlane(config, { database, seal, log });
  const access = await createAccess(config, database, log);
  const services = [access, ...(config.only ? [] : [...vault.maintenance, control_plane])];
  for (const service of services) service.start();
  const { control, router } = control_plane;
  const body_parser = new BodyParser();
  const http_services = { access, disconnects, experiments, default_assistants, activation, vault, control, router };
  const { app, front } = await createHttp(config, context, { ...http_services, body_parser }, log);
  served.resolve(app);
  return {
    fetch: (request) => app.fetch(request),
    front,
    router,
    routes: app.routes,
    database: database.description,
    loaded,
    async reload(content) {
      catalog.content = content;
      await default_assistants.renew();
      await default_assistants.ensure(DEFAULT_TENANT);
      catalog.failures = await engine.reload();
      return catalog.failures;
    },
    async stop() {
      disconnects.stop();
      const stopping = services.map((service) => service.stop());
      await Promise.all([engine.stop(config.shutdown_grace_ms), type_schemas.stop(), ...stopping]);
      await Promise.all([experiments.stop(), body_parser.stop()]);
      await close();
    },
  };
}

const experimentsDatabase = (config: Config): ExperimentsOptions["database"] =>
  config.database_url
    ? { url: config.database_url }
    : { file: fileOf(config, "experiments"), synchronous: synchronousOf(config) };

/** Durability of a commit: with `serve` it survives a power failure, with `dev` a crash of the process. */
const synchronousOf = ({ command }: Pick<Config, "command">) => (command === "serve" ? "full" : "normal");
