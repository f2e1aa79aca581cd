import { Activation } from "./agents/activation.ts";
import { Cancellations } from "./agents/cancellations.ts";
import { DefaultAssistants } from "./agents/default-assistants.ts";
import { Disconnects } from "./agents/disconnects.ts";
import { GraphCatalog } from "./agents/graph-catalog.ts";
import type { Config } from "./config.ts";
import { DEFAULT_TENANT } from "./contract/caller.ts";
import type { DeploymentRouter } from "./control/router/deployment-router.ts";
import { experimentThreads, type ThreadSetup } from "./experiments/threads.ts";
import type { DeploymentFront } from "./http/deployment-front.ts";
import type { Log } from "./lib/log.ts";
import { createEngine } from "./main/engine.ts";
import { createHttp } from "./main/http.ts";
import { accessTo, openVault, refuseToBeOpen } from "./main/vault.ts";
import { fileOf, openData } from "./storage/open-data.ts";
import { keySourceOf } from "./vault/key-source.ts";
import { openKeyRing } from "./vault/open-key-ring.ts";
import { sealsNothing } from "./vault/seals-nothing.ts";
import type { Vault } from "./vault/vault.ts";

export { type Listening, listen } from "./main/listen.ts";

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
  reload(changed: Pick<Config, "graphs" | "graph_env">): Promise<Record<string, string>>;
  /** Lets runs end or hands them back, then closes everything. */
  stop(): Promise<void>;
}

/** Wires everything together and starts it. This file and its folder are the only place that knows all parts. */
export async function startThreadmill(config: Config, log: Log): Promise<Threadmill> {
  const keys = config.only ? undefined : keySourceOf(config);
  const { database, close } = await openData(config, synchronousOf(config), log);
  const seal = keys ? await openKeyRing(database, keys, log) : sealsNothing;
  await refuseToBeOpen(config, database);
  const catalog = new GraphCatalog(config.graphs, config.graph_env);
  const defaults = new DefaultAssistants(database, catalog, config.default_assistants);
  const activation = new Activation({ database, default_assistants: defaults, rollout: config.rollout });
  await activation.begin();
  let opening: Promise<Vault> | undefined;
  const vaultWhenOpen = () => {
    opening ??= openVault(config, database, seal, log);
    return opening;
  };
  const engine = createEngine(config, database, catalog, vaultWhenOpen, log);
  await engine.start();
  const loaded = engine.loadFailures.then((failures) => {
    catalog.failures = failures;
    return failures;
  });
  // Nobody has to ask how the loading went.
  loaded.catch(() => undefined);
  const context = { database, engine, catalog };
  const cancellations = new Cancellations(context);
  const disconnects = new Disconnects({
    cancel: (run) => cancellations.cancelIfActive(run),
    grace_ms: config.disconnect_grace_ms,
    log,
  });
  const experiments = experimentThreads({ database: experimentsDatabase(config), log_level: config.log_level });
  // Loaded while the graph hosts load the graphs on another core: the vault, the control plane, the HTTP part.
  const vault = await vaultWhenOpen();
  const { openControl } = await import("./main/control.ts");
  const plane = await openControl(config, { database, seal, log });
  const services = config.only ? [] : [...vault.maintenance, plane];
  for (const service of services) service.start();
  const access = await accessTo(config, database, log);
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
  };
  const { app, front } = await createHttp(config, context, parts, log);
  return {
    fetch: (request) => app.fetch(request),
    front,
    router,
    routes: app.routes,
    database: database.description,
    loaded,
    async reload({ graphs, graph_env }) {
      catalog.graphs = graphs;
      catalog.env = graph_env;
      await defaults.renew();
      await defaults.meet(DEFAULT_TENANT);
      catalog.failures = await engine.reload();
      return catalog.failures;
    },
    async stop() {
      disconnects.stop();
      const quiet = services.map((service) => service.stop());
      await Promise.all([engine.stop(config.shutdown_grace_ms), ...quiet]);
      await experiments.stop();
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
