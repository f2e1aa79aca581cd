import type { IncomingMessage } from "node:http";
import { HttpApi } from "./http-api.ts";
import type { Server, State, StreamTimes, Target, Usage } from "./target.ts";

/** A server process that answers on a port of this machine. */
export interface ServerProcess {
  port: number;
  /** When it was spawned, on the clock of performance.now(). */
  spawned_at: number;
  /** How long after that GET /ok first answered 200, in ms. */
  ready_ms: number;
  usage(): Usage | undefined;
  stop(): Promise<void>;
  /** Starts it again, on what it has left behind; it must have been stopped. */
  startAgain(): Promise<ServerProcess>;
}

/** How a server's stream begins a custom event. */
const CUSTOM_EVENT = "event: custom";

/** Asks a server for runs, over connections that stay open. The same client for all servers, and as little of one as will do. */
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
      ask: (...asked) => api().ask(...asked),
      open: (...asked) => api().open(...asked),
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
    const asked_at = performance.now();
    const response = await this.#api.open("POST", "/runs/stream", { body });
    return await timeEvents(response, asked_at);
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
    const state = JSON.parse(await this.#api.ask("POST", path, { body })) as State;
    if ("__error__" in state) throw new Error(`The run of POST ${path} failed: ${JSON.stringify(state)}.`);
    return state;
  }
}

/** Notes when the events of a stream come, without parsing them. */
async function timeEvents(response: IncomingMessage, asked_at: number): Promise<StreamTimes> {
  response.setEncoding("utf8");
  const times = { asked_at, first_at: 0, last_at: 0, events: 0, events_after_first: 0 };
  let rest = "";
  for await (const chunk of response) {
    const parts = (rest + chunk).split(CUSTOM_EVENT);
    // What is left may hold the beginning of the next event's first words, but never all of them.
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
