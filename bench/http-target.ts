import type { IncomingMessage } from "node:http";
import { HttpApi } from "./http-api.ts";
import type { Server, State, StreamTimes, Target, Usage } from "./target.ts";

/** A local server process. */
export interface ServerProcess {
  port: number;
  /** Time of the spawn, on the clock of performance.now(). */
  spawned_at: number;
  /** Time from the spawn to the first 200 of GET /ok, in ms. */
  ready_ms: number;
  usage(): Usage | undefined;
  /** Executes SQL on the database of the experiments. Missing for the peer. */
  execute?(statement: string): Promise<void>;
  stop(): Promise<void>;
  /** Starts a stopped server again on its data. */
  startAgain(): Promise<ServerProcess>;
}

/** The start of a custom event in an event stream. */
const CUSTOM_EVENT = "event: custom";

/** A server as target. All servers use the same minimal client with keep-alive connections. */
export class HttpTarget implements Target {
  #server: ServerProcess;
  #api: HttpApi;
  readonly server: Server;

  constructor(server: ServerProcess) {
    this.#server = server;
    this.#api = new HttpApi(server.port);
    const api = () => this.#api;
    this.server = {
      get port() {
        return api().port;
      },
      send: (...args) => api().send(...args),
      open: (...args) => api().open(...args),
      execute: async (statement) => {
        if (!this.#server.execute) throw new Error("This server has no database.");
        await this.#server.execute(statement);
      },
      restart: () => this.#restart(),
    };
  }

  get ready_ms(): number {
    return this.#server.ready_ms;
  }

  age_ms(): number {
    return performance.now() - this.#server.spawned_at;
  }

  run(graph: string, input: object, thread_id: string): Promise<State> {
    return this.#wait(`/threads/${thread_id}/runs/wait`, { assistant_id: graph, input, if_not_exists: "create" });
  }

  runStateless(graph: string, input: object): Promise<State> {
    return this.#wait("/runs/wait", { assistant_id: graph, input });
  }

  async streamCustom(graph: string, input: object): Promise<StreamTimes> {
    const body = { assistant_id: graph, input, stream_mode: ["custom"] };
    const sent_at = performance.now();
    const response = await this.#api.open("POST", "/runs/stream", { body });
    return await timeEvents(response, sent_at);
  }

  usage(): Usage | undefined {
    return this.#server.usage();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#api.close();
    await this.#server.stop();
  }

  async #restart(): Promise<void> {
    this.#api.close();
    await this.#server.stop();
    this.#server = await this.#server.startAgain();
    this.#api = new HttpApi(this.#server.port);
  }

  async #wait(path: string, body: object): Promise<State> {
    const state = JSON.parse(await this.#api.send("POST", path, { body })) as State;
    if ("__error__" in state) throw new Error(`The run of POST ${path} failed: ${JSON.stringify(state)}.`);
    return state;
  }
}

/** Records the arrival times of custom events without parsing them. */
async function timeEvents(response: IncomingMessage, sent_at: number): Promise<StreamTimes> {
  response.setEncoding("utf8");
  const times = { sent_at, first_at: 0, last_at: 0, events: 0, events_after_first: 0 };
  let rest = "";
  for await (const chunk of response) {
    const parts = (rest + chunk).split(CUSTOM_EVENT);
    // The rest may contain a prefix of CUSTOM_EVENT, but never all of it.
    rest = (parts.at(-1) ?? "").slice(1 - CUSTOM_EVENT.length);
    const found = parts.length - 1;
    if (found === 0) continue;
    times.last_at = performance.now();
    if (times.events === 0) times.first_at = times.last_at;
    else times.events_after_first += found;
    times.events += found;
  }
  return times;
}
