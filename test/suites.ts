/** A group of test files that run in the same way: a project of Vitest. */
export interface Suite {
  include: string[];
  exclude?: string[];
  /**
   * The database of suites that are written for any; see {@link databases} of support/databases.ts. `either`: one of the two, which `SEED`
   * selects. For suites that repeat others, which run on both, in another language, encrypted or with kills.
   */
  database: "sqlite" | "postgres" | "both" | "either";
  /** `always`: with `npm test`. `rest`: what `npm run test:all` has more than that. */
  runs: "always" | "rest";
  /** A process for each file: for suites that change the process itself. */
  isolate?: boolean;
  /** After all others, one file at a time. */
  measures?: true;
  pool?: "forks" | "threads";
  /** The language of the graphs of test/graphs/scenarios. Default: `js`. */
  language?: "python";
  /** Whether their project has encryption handlers, which are in Python. */
  encrypts?: true;
}

/** Rules and calculations, without a service. */
const UNIT = [
  "test/{architecture,vocabulary}.test.ts",
  "test/docs/{compatibility,deploy-files,docs}.test.ts",
  "test/lib/**/*.test.ts",
  "test/experiments/{filter,json-rows,statistics,times,wire}.test.ts",
  "test/traces/{otlp,otlp-request,usage}.test.ts",
  "test/vault/key-ring.test.ts",
  "test/control/{docker-log,kubernetes-manifests}.test.ts",
  "test/control/router/{addresses,hygiene,retry}.test.ts",
  "test/web/{answers,pause,payload-messages,preview,prompt-template,thread-steps,trace-tree}.test.ts",
  "web/src/**/*.test.tsx",
];

/** Kills and faults of the database, processes that share one, random sequences: claims, leases, rollback. */
const FAULTS = [
  "test/crash/{durability,ledger,python-hosts,readers}.test.ts",
  "test/{faults,model}/**/*.test.ts",
  "test/engine/{database-faults,pgbouncer,roles,rollout,shared-data,worker-processes}.test.ts",
];

/** Their limits are milliseconds: a median of 24 ms was 108 ms beside three other files. */
const LATENCY = ["test/engine/latency.test.ts"];

/** Kills and random requests of the parts around the engine. Suites of `npm test` run their statements on both databases. */
const FAULTS_AROUND = [
  "test/crash/{crons-and-webhooks,protocol-clients}.test.ts",
  "test/fuzz/{experiments,fuzz}.test.ts",
  "test/engine/{a2a,crons,webhooks}.test.ts",
  "test/experiments/upload-faults.test.ts",
  "test/traces/{agent-runs-faults,ingestion-faults,large-traces}.test.ts",
  "test/vault/flow-canary.test.ts",
  "test/control/{crashes,rollout,rollout-kills}.test.ts",
];

/** Hosts that hang, drivers, keys: what fails there is no database. */
const FAULTS_OF_HOSTS = [
  "test/engine/{auth-handlers-that-hang,clock,data-faults,hosts-that-hang,large-states}.test.ts",
  "test/fuzz/{auth-service,control-plane}.test.ts",
  "test/vault/{key-check,rotation}.test.ts",
  "test/control/{docker-driver,docker-images,docker-rollout,orphans,process-build,process-driver,trace-collector,traces}.test.ts",
  "test/security/{deployment-users,docker-containers,docker-images,docker-network,git-sources}.test.ts",
];

const BROWSER = [
  "test/security/pages.test.ts",
  "test/web/{agents,compare,connections,deployment-sources,deployments,experiments,failing-row,frame,home,matrix,previews,prompts,queues,runs,settings,task,chat-pages,threads,trace-links,traces,ui-components}.test.ts",
];

/** Official clients that `npm ci` brings. */
const CLIENTS = [
  "test/compat/{a2a,ag-ui,ag-ui-order,agent-server-methods-js,chat-uis,evaluate-js,js-client,langsmith-js,langsmith-methods-js,mcp,reconnect,remote-graph}.test.ts",
];

/** The command line, clients that are installed, written in Python or have another base path, pages of the documentation that are followed step by step. */
const COMMANDS = [
  "test/cli/**/*.test.ts",
  "test/compat/{agent-server-methods-python,auth-python,deployment,evaluate-python,langgraph-deploy}.test.ts",
  "test/compat/{langgraphjs-deploy,langsmith-methods-python}.test.ts",
  "test/compat/{langsmith-js-api-v1,langsmith-python,python-client,replayed-traffic,test-plugins,tokens-in-graphs}.test.ts",
  "test/docs/{deploy,helm-chart,oauth}.test.ts",
  "test/http/store-pgvector.test.ts",
];

/** Projects with packages of their own, installed from the registry. */
const PACKAGE = [
  "test/engine/{author-imports,judge-example,own-packages,provided-packages,provider-embeddings}.test.ts",
  "test/docs/{own-project,python,tracing}.test.ts",
  "test/control/{custom-auth,python-build}.test.ts",
  "test/package/image.test.ts",
];

/**
 * Their services start worker threads with databases. Node has crashed twice (SIGTRAP in V8, SIGSEGV) in a process that had run other
 * files before, so each of these files has its own process.
 */
const EXPERIMENTS_ON_SQLITE = [
  "test/http/route-table.test.ts",
  "test/experiments/{dataset-files,dataset-schemas}.test.ts",
  "test/traces/{overload,usage-in-parts}.test.ts",
];
/** What the database decides most: the SQL of filters, containment, merging, sums. `npm test` runs them on Postgres, too. */
const EXPERIMENTS = [
  "test/experiments/{comparison,query,query-filters,splits,upload}.test.ts",
  "test/traces/{experiments,ingestion}.test.ts",
];
const MORE_EXPERIMENTS = [
  "test/experiments/{annotation-queues,at-once,attachments,compared-rows,prompts,versions}.test.ts",
  "test/traces/{agent-runs,hostile-bodies,large-fields,reading,retention,sharing,tenancy-routes,threads,trace-page}.test.ts",
];

/** What is particular to graphs in Python. */
const ONLY_PYTHON = [
  "test/http/{encryption,python-app,python-auth,python-checkpoints,python-example,python-graphs}.test.ts",
  "test/python/host.test.ts",
  "test/traces/python-runs.test.ts",
];

/** What a graph's language must not change. The graphs have twins in Python. */
const PYTHON = [
  ...ONLY_PYTHON,
  "test/http/{assistants-graphs,bad-input,bulk-cancel,cancel,disconnects,event-storage,failing-runs,interrupts,multitask}.test.ts",
  "test/http/{rollback,run-config,run-log,run-states,runs,state,state-updates,stateless-runs,streams}.test.ts",
  "test/http/{thread-protocol,thread-socket,thread-stream,threads}.test.ts",
  "test/http/custom-auth/{filters,handlers,routes,socket}.test.ts",
  "test/engine/auth-handlers-that-hang.test.ts",
];

/** Kills and random sequences with Python graphs: of these suites, the ones that execute graphs. */
const PYTHON_FAULTS = [
  "test/crash/{durability,ledger,python-hosts,readers}.test.ts",
  "test/model/{crash,model}.test.ts",
];

/** Several services in one process: the SQLite database of a service belongs to one service. */
const ONLY_POSTGRES = ["test/http/{a2a-processes,mcp-processes}.test.ts"];

/** Deployments on Kubernetes need Postgres. */
const KUBERNETES = [
  "test/control/kubernetes-{conformance,driver,rollout,server}.test.ts",
  "test/control/listener*.test.ts",
];

/** What the database decides: claims, leases, locks, containment, search, migrations, notifications, retention, rollback, races. */
const POSTGRES = [
  ...ONLY_POSTGRES,
  "test/storage/**/*.test.ts",
  "test/engine/{event-log,lost-connections,token-requests}.test.ts",
  "test/control/{leases,process,reconciler}.test.ts",
  "test/control/router/rows.test.ts",
  "test/vault/{flow-races,flows,refresh,sealed-columns,token-events}.test.ts",
  "test/http/{a2a-push,a2a-tasks,app-api,assistants,assistants-search,bulk-cancel,cancel,crons,disconnects,event-storage}.test.ts",
  "test/http/{multitask,retention,rollback,store,store-search,thread-protocol,thread-ttl,threads-search,webhooks}.test.ts",
  "test/http/custom-auth/filters.test.ts",
  "test/http/auth-service/{deletion,tokens}.test.ts",
  "test/security/{deployment-roles,fairness,open-proxied-streams,open-streams,workspace-limits}.test.ts",
  "test/http/control/{changes,deployments,logs,revisions}.test.ts",
];

/** Each statement that the files of test/http execute on Postgres is also executed by a file of {@link POSTGRES}. */
const MORE_ON_POSTGRES = [
  "test/http/{a2a-users,interrupts,metrics,run-states,runs,state-updates,stateless-runs,streams,thread-stream,threads}.test.ts",
  "test/http/custom-auth/routes.test.ts",
];

/** The later a suite, the longer its files take: they are begun in reverse order. */
export const SUITES: Readonly<Record<string, Suite>> = {
  unit: { include: UNIT, database: "sqlite", runs: "always" },
  api: {
    include: ["test/**/*.test.ts"],
    exclude: [
      ...UNIT,
      ...EXPERIMENTS_ON_SQLITE,
      ...EXPERIMENTS,
      ...MORE_EXPERIMENTS,
      ...FAULTS,
      ...LATENCY,
      ...FAULTS_AROUND,
      ...FAULTS_OF_HOSTS,
      ...BROWSER,
      ...CLIENTS,
      ...COMMANDS,
      ...PACKAGE,
      ...ONLY_POSTGRES,
      ...KUBERNETES,
      ...ONLY_PYTHON,
    ],
    database: "sqlite",
    runs: "always",
  },
  experiments: {
    include: [...EXPERIMENTS_ON_SQLITE, ...EXPERIMENTS, ...MORE_EXPERIMENTS],
    database: "sqlite",
    runs: "always",
    isolate: true,
  },
  "experiments on postgres": { include: EXPERIMENTS, database: "postgres", runs: "always", isolate: true },
  "more experiments on postgres": { include: MORE_EXPERIMENTS, database: "postgres", runs: "rest", isolate: true },
  postgres: {
    include: POSTGRES,
    exclude: ["test/storage/{experiment,text}-search.test.ts"],
    database: "postgres",
    runs: "always",
  },
  "more on postgres": { include: MORE_ON_POSTGRES, database: "postgres", runs: "rest" },
  clients: { include: CLIENTS, database: "sqlite", runs: "always" },
  "clients on postgres": {
    include: ["test/compat/{a2a,ag-ui,chat-uis,js-client,mcp,reconnect,remote-graph}.test.ts"],
    database: "postgres",
    runs: "rest",
  },
  python: { include: PYTHON, database: "sqlite", runs: "rest", language: "python" },
  "python on postgres": {
    include: ["test/http/{interrupts,python-checkpoints,rollback}.test.ts"],
    database: "postgres",
    runs: "rest",
    language: "python",
  },
  // Filters do not find what is encrypted, and the rows of a rollback are encrypted anew.
  encrypted: {
    include: [
      "test/http/{bulk-cancel,cancel,interrupts,multitask,runs,state-updates,stateless-runs,streams,thread-protocol,webhooks}.test.ts",
      "test/crash/{durability,ledger}.test.ts",
    ],
    database: "either",
    runs: "rest",
    encrypts: true,
  },
  "python faults": { include: PYTHON_FAULTS, database: "either", runs: "rest", language: "python" },
  kubernetes: { include: KUBERNETES, database: "postgres", runs: "rest" },
  commands: { include: COMMANDS, database: "sqlite", runs: "rest" },
  browser: { include: BROWSER, database: "sqlite", runs: "rest" },
  hosts: { include: FAULTS_OF_HOSTS, database: "sqlite", runs: "rest" },
  "faults around the engine": { include: FAULTS_AROUND, database: "either", runs: "rest" },
  faults: { include: FAULTS, exclude: ["test/crash/python-hosts.test.ts"], database: "both", runs: "rest" },
  latency: { include: LATENCY, database: "postgres", runs: "rest", measures: true },
  package: { include: PACKAGE, database: "sqlite", runs: "rest" },
};
