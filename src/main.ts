import { join } from "node:path";
import { keySourceOf } from "./access/encryption/key-source.ts";
import { sealsNothing } from "./access/encryption/no-encryption.ts";
import { openKeyRing } from "./access/encryption/open-key-ring.ts";
import type { Vault } from "./access/vault.ts";
import { Activation } from "./agent-server/activation.ts";
import { Cancellations } from "./agent-server/cancellations.ts";
import { DefaultAssistants } from "./agent-server/default-assistants.ts";
import { Disconnects } from "./agent-server/disconnects.ts";
import { type CatalogContent, GraphCatalog } from "./agent-server/graph-catalog.ts";
import { TypeSchemaReader } from "./agent-server/graph-hosts/type-schemas/reader.ts";
import { createEngine, fetchAsUser } from "./app/compose/engine.ts";
import { createHttp } from "./app/compose/http.ts";
import { fileOf, openData } from "./app/compose/open-data.ts";
import { accessTo, openVault, refuseToBeOpen } from "./app/compose/vault.ts";
import type { DeploymentFront } from "./app/deployment-front.ts";
import type { Config } from "./config/config.ts";
import type { DeploymentRouter } from "./control-plane/router/deployment-router.ts";
import { experimentThreads, type ThreadSetup } from "./experiments/worker/experiments-service.ts";
import { DEFAULT_TENANT } from "./platform/contract/caller.ts";
import { BodyParser } from "./platform/http/body-parser.ts";
import type { App } from "./platform/http/route.ts";
import type { Log } from "./platform/lib/log.ts";

export { type Listening, listen } from "./app/compose/listen.ts";

/** The service without a socket. */
export interface Threadmill {
  /** Answers requests. */
  fetch(request: Request): Response | Promise<Response>;
  /** Answers what is for deployments, before it becomes a request. */
  front: DeploymentFront;
  /** Where requests for deployments go. */
  router: DeploymentRouter;
  /** What is served, as Hono has it: `:name` stands for a part of the path, and method ALL is what stands before the routes. */
  routes: readonly { method: string; path: string }[];
  /** For people: which database it uses. */
  database: string;
  /** Reasons by graph, for graphs that could not be loaded. */
  loaded: Promise<Record<string, string>>;
  /** Loads the graphs anew; what runs goes on with the old ones. */
  reload(changed: CatalogContent): Promise<Record<string, string>>;
  /** Lets runs end or hands them back, then closes everything. */
  stop(): Promise<void>;
}

/** Wires everything together and starts it. This file and its folder are the only place that knows all parts. */
export async function startThreadmill(config: Config, log: Log): Promise<Threadmill> {
  const keys = config.only ? undefined : keySourceOf(config);
  const { database, close } = await openData(config, synchronousOf(config), log);
  const seal = keys ? await openKeyRing(database, keys, log) : sealsNothing;
  await refuseToBeOpen(config, database);
  const catalog = new GraphCatalog(config);
  const defaults = new DefaultAssistants(database, catalog);
  const activation = new Activation({ database, default_assistants: defaults, rollout: config.rollout });
  await activation.begin();
  let opening: Promise<Vault> | undefined;
  const vaultWhenOpen = () => {
    opening ??= openVault(config, database, seal, log);
    return opening;
  };
  const served = Promise.withResolvers<App>();
  const fetchAs = fetchAsUser(served.promise, config.mount_prefix);
  const engine = createEngine(config, database, catalog, { vault: vaultWhenOpen, fetchAs }, log);
  await engine.start();
  const loaded = engine.loadFailures.then((failures) => {
    catalog.failures = failures;
    return failures;
  });
  // Nobody has to ask how the loading went.
  loaded.catch(() => undefined);
  const type_schemas = new TypeSchemaReader({
    project_dir: config.project_dir,
    timeout_ms: config.schema_timeout_ms,
    cache_dir: join(config.data_dir, "type-schemas"),
    log,
  });
  const context = { database, engine, catalog, type_schemas };
  const cancellations = new Cancellations(context);
  const disconnects = new Disconnects({
    cancel: (run) => cancellations.cancelIfActive(run),
    grace_ms: config.disconnect_grace_ms,
    log,
  });
  const experiments = experimentThreads({ database: experimentsDatabase(config), log_level: config.log_level });
  // Loaded while the graph hosts load the graphs on another core: the vault, the control plane, the HTTP part.
  const vault = await vaultWhenOpen();
  const { openControl } = await import("./app/compose/control.ts");
  const plane = await openControl(config, { database, seal, log });
  const access = await accessTo(config, database, log);
  const services = [access, ...(config.only ? [] : [...vault.maintenance, plane])];
  for (const service of services) service.start();
  const { control, router } = plane;
  const parts = {
    access,
    cancellations,
    disconnects,
    experiments,
    default_assistants: defaults,
    activation,
    vault,
    control,
    router,
    body_parser: new BodyParser(),
  };
  const { app, front } = await createHttp(config, context, parts, log);
  served.resolve(app);
  return {
    fetch: (request) => app.fetch(request),
    front,
    router,
    routes: app.routes,
    database: database.description,
    loaded,
    async reload({ graphs, graph_env, default_assistants }) {
      catalog.content = { graphs, graph_env, default_assistants };
      await defaults.renew();
      await defaults.meet(DEFAULT_TENANT);
      catalog.failures = await engine.reload();
      return catalog.failures;
    },
    async stop() {
      disconnects.stop();
      const quiet = services.map((service) => service.stop());
      await Promise.all([engine.stop(config.shutdown_grace_ms), type_schemas.stop(), ...quiet]);
      await Promise.all([experiments.stop(), parts.body_parser.stop()]);
      await close();
    },
  };
}

const experimentsDatabase = (config: Config): ThreadSetup["database"] =>
  config.database_url
    ? { url: config.database_url }
    : { file: fileOf(config, "experiments"), synchronous: synchronousOf(config) };

/** What is promised of a commit: `serve` survives a power cut, `dev` the death of the process. */
const synchronousOf = ({ command }: Pick<Config, "command">) => (command === "serve" ? "full" : "normal");
