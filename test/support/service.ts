import { readdirSync, readFileSync, symlinkSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { type Config, type Intervals, readConfig } from "../../src/config/config.ts";
import { type Listening, listen, startThreadmill, type Threadmill } from "../../src/main.ts";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { createDatabase, type DatabaseName, type TestDatabase } from "./databases.ts";
import { encryptionEnv } from "./encryption.ts";
import { madeOnce } from "./made-once.ts";

export interface TestService {
  database: TestDatabase;
  config: Config;
  threadmill: Threadmill;
  /** Sends a request without a socket. A body is sent as JSON. */
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Puts the service on a port of its own, for real clients. */
  listen(): Promise<string>;
  /** Stops the service and drops its database. */
  stop(): Promise<void>;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** The parsed JSON body; undefined without a body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  body: any;
  text: string;
}

/** Settings for tests: short graces, so that nothing is waited for longer than needed. */
const SHORT = {
  LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? "silent",
  BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0.1",
  THREADMILL_CANCEL_GRACE: "500ms",
  EXAMPLES_DELAY_MS: "0",
};

/** Starts a whole service in this process, on a fresh database, with the graphs of a langgraph.json. */
export async function startService(options: {
  database: DatabaseName;
  /** The database of a service that has stopped; default: a fresh one. */
  on?: TestDatabase;
  /** See {@link createDatabase}. */
  admin?: string;
  /** Absolute path, or from the repository's root. */
  config: string;
  env?: Record<string, string>;
  intervals?: Partial<Intervals>;
  command?: "dev" | "serve";
  /** Whether graph hosts are on this thread, where they start ten times as fast; false for tests whose subject they are. */
  inline?: boolean;
  /** Whether runs are traced; false for tests whose subject is not tracing. */
  tracing?: boolean;
  /** Receives the log lines; default: standard error, at the level of the settings. */
  log?: Log;
}): Promise<TestService> {
  const { on, admin } = options;
  const database = on ?? (await createDatabase(options.database, admin === undefined ? {} : { admin }));
  // Reading the schemas of a graph from its types takes seconds. Projects in temporary folders would only make the cache larger.
  if (!on && !isAbsolute(options.config)) symlinkSync(await typeSchemas(), join(database.data_dir, "type-schemas"));
  const flags = {
    config: resolve(import.meta.dirname, "../..", options.config),
    port: "0",
    data: database.data_dir,
    databaseUrl: database.url,
    inline: options.inline ?? true,
  };
  const tracing = options.tracing ? "on" : "off";
  const env = {
    ...process.env,
    ...SHORT,
    THREADMILL_TRACING: tracing,
    ...encryptionEnv(database.url),
    ...options.env,
  };
  // On a busy machine, authentication handlers may need more than the 10 s of the default.
  const intervals = { auth_timeout_ms: 60_000, ...options.intervals };
  const config = readConfig(options.command ?? "dev", flags, env, intervals);
  const threadmill = await startThreadmill(config, options.log ?? createLog(config.log_level));
  let listening: Listening | undefined;
  return {
    database,
    config,
    threadmill,
    request: (method, path, body, headers) => send(threadmill, method, path, body, headers),
    async listen() {
      listening ??= await listen(config, threadmill);
      return listening.url;
    },
    async stop() {
      await (listening ?? threadmill).stop();
      await database.drop();
    },
  };
}

const EXTRACTION = join(import.meta.dirname, "../../src/agent-server/graph-hosts/type-schemas");

/** The schemas that this version of the extraction has read. */
const typeSchemas = async (): Promise<string> =>
  (await madeOnce({
    client: "Reading schemas from types",
    folder_prefix: "type-schemas",
    made_of: readdirSync(EXTRACTION)
      .map((file) => readFileSync(join(EXTRACTION, file), "utf8"))
      .join(),
    make: async () => undefined,
  })) as string;

async function send(
  threadmill: Threadmill,
  method: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    body: typeof body === "string" ? body : body === undefined ? undefined : JSON.stringify(body),
  });
  const response = await threadmill.fetch(request);
  const text = await response.text();
  const isJson = /^application\/(problem\+)?json\b/.test(response.headers.get("content-type") ?? "");
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text !== "" && isJson ? JSON.parse(text) : undefined,
  };
}
