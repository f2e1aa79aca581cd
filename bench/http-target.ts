import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import type { State, StreamTimes, Target, Usage } from "./target.ts";

/** A server process that answers on a port of this machine. */
export interface ServerProcess {
  port: number;
  /** When it was spawned, on the clock of performance.now(). */
  spawned_at: number;
  /** How long after that GET /ok first answered 200, in ms. */
  ready_ms: number;
  usage(): Usage | undefined;
  stop(): Promise<void>;
}

/** How a server's stream begins a custom event. */
const CUSTOM_EVENT = "event: custom";

/** Asks a server for runs, over connections that stay open. The same client for all servers, and as little of one as will do. */
export class HttpTarget implements Target {
  readonly #server: ServerProcess;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 256 });

  constructor(server: ServerProcess) {
    this.#server = server;
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
    const asked_at = performance.now();
    const response = await this.#post("/runs/stream", { assistant_id: graph, input, stream_mode: ["custom"] });
    return await timeEvents(response, asked_at);
  }

  usage(): Usage | undefined {
    return this.#server.usage();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await this.#server.stop();
  }

  async #wait(path: string, body: object): Promise<State> {
    const state = JSON.parse(await textOf(await this.#post(path, body))) as State;
    if ("__error__" in state) throw new Error(`The run of POST ${path} failed: ${JSON.stringify(state)}.`);
    return state;
  }

  async #post(path: string, body: object): Promise<IncomingMessage> {
    const text = JSON.stringify(body);
    const sent = request({
      host: "127.0.0.1",
      port: this.#server.port,
      path,
      method: "POST",
      agent: this.#agent,
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(text) },
    });
    // Errors after the response has begun also reach its reader.
    sent.on("error", () => undefined);
    sent.end(text);
    const response = await responseOf(sent);
    if (response.statusCode !== 200)
      throw new Error(`POST ${path} answered ${response.statusCode}: ${await textOf(response)}`);
    return response;
  }
}

async function responseOf(sent: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return response;
}

async function textOf(response: IncomingMessage): Promise<string> {
  response.setEncoding("utf8");
  let text = "";
  for await (const chunk of response) text += chunk;
  return text;
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
