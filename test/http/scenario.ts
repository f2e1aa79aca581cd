import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseName } from "../support/databases.ts";
import { graphsIn, language } from "../support/language.ts";
import { type Answer, startService, type TestService } from "../support/service.ts";
import { parseSse, type SseEvent } from "../support/sse.ts";
import { until } from "../support/until.ts";

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE" | "OPTIONS";

/** A run or thread as the wire shows it. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Wire = any;

/** An id that nothing has. */
export const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";

/** The graphs with authentication handlers, both in the language of the suite. */
export const AUTH_CONFIG = `test/graphs/scenarios/${language === "python" ? "auth-python" : "auth"}.json`;

/** A service with the graphs of test/graphs/scenarios, and the calls that many scenarios make. */
export class Scenario {
  readonly service: TestService;
  readonly #doors = mkdtempSync(join(tmpdir(), "threadmill-doors-"));
  #doorCount = 0;

  private constructor(service: TestService) {
    this.service = service;
  }

  /** @param inline see startService() */
  static async start(
    database: DatabaseName,
    env: Record<string, string> = {},
    options: Partial<Omit<Parameters<typeof startService>[0], "database" | "env">> = {},
  ): Promise<Scenario> {
    const graphs = await graphsIn("scenarios");
    return new Scenario(await startService({ database, ...graphs, ...options, env: { ...graphs.env, ...env } }));
  }

  async stop(): Promise<void> {
    await this.service.stop();
    rmSync(this.#doors, { recursive: true, force: true });
  }

  /** Any request; the answer may be an error. */
  send(method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    return this.service.request(method, path, body, headers);
  }

  /** A request that must succeed; answers its body. */
  async call(method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<Wire> {
    const answer = await this.send(method, path, body, headers);
    if (answer.status >= 300) throw new Error(`${method} ${path} was answered ${answer.status}: ${answer.text}`);
    return answer.body;
  }

  get = (path: string) => this.call("GET", path);
  post = (path: string, body?: unknown) => this.call("POST", path, body);

  newThread = async (body: object = {}): Promise<string> => (await this.post("/threads", body)).thread_id;
  thread = (thread_id: string) => this.get(`/threads/${thread_id}`);
  state = (thread_id: string) => this.get(`/threads/${thread_id}/state`);
  history = (thread_id: string, body: object = {}): Promise<Wire[]> => this.post(`/threads/${thread_id}/history`, body);

  newRun = (thread_id: string, body: object) => this.post(`/threads/${thread_id}/runs`, body);
  run = ({ thread_id, run_id }: Wire) => this.get(`/threads/${thread_id}/runs/${run_id}`);
  join = ({ thread_id, run_id }: Wire) => this.get(`/threads/${thread_id}/runs/${run_id}/join`);
  wait = (thread_id: string, body: object) => this.post(`/threads/${thread_id}/runs/wait`, body);
  cancel = ({ thread_id, run_id }: Wire, query = "?wait=1") =>
    this.send("POST", `/threads/${thread_id}/runs/${run_id}/cancel${query}`);

  /** All events of a new run. */
  async stream(thread_id: string, body: object): Promise<SseEvent[]> {
    return parseSse((await this.send("POST", `/threads/${thread_id}/runs/stream`, body)).text);
  }

  /** A run of the graph `slow` that is running: its first step is done, and it waits for its door. */
  async runningSlow(thread_id: string, door: string | null = null, body: object = {}): Promise<Wire> {
    const run = await this.newRun(thread_id, { assistant_id: "slow", input: { steps: ["in"], door }, ...body });
    await until("the slow run has begun", async () => {
      if ((await this.state(thread_id)).next?.includes("wait")) return true;
      const { status } = await this.run(run);
      if (status !== "pending" && status !== "running") throw new Error(`The slow run has ended: ${status}.`);
      return false;
    });
    return run;
  }

  /** A door for the graph `slow`; its run ends once the door is open. */
  newDoor(): { path: string; open(): void } {
    const path = join(this.#doors, String(++this.#doorCount));
    return { path, open: () => writeFileSync(path, "") };
  }
}
