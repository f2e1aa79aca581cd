import { randomUUID } from "node:crypto";
import { parseSse, type SseEvent } from "../support/sse.ts";
import type { DeployedService } from "./deployed-service.ts";

/** Where the deployment of the tests is. */
const AGENT = "/deployments/mine";
const EVERY_MS = 20;
/** More would only wait, on a busy machine for longer than replaced instances are given to end what they have. */
const MAX_UNDER_WAY = 100;

/** A project whose runs note which version has executed them, and may wait at a gate, a file, while they emit. */
export const projectOf = (version: string, first = ""): Record<string, string> => ({
  "langgraph.json": JSON.stringify({ graphs: { agent: "./agent.mjs:graph" } }),
  "agent.mjs": `${first}
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({
  gate: Annotation,
  versions: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
export const graph = new StateGraph(State)
  .addNode("node", async ({ gate }, config) => {
    for (let n = 0; gate && !existsSync(gate); n++) {
      config.writer?.({ n });
      await pause(100, undefined, { signal: config.signal });
    }
    return { versions: [${JSON.stringify(version)}] };
  })
  .addEdge("__start__", "node").addEdge("node", "__end__").compile();
`,
});

interface State {
  values: { versions: string[] };
}

/** Runs the agent on a thread, and answers the versions that have executed its runs. */
export async function runOn(service: DeployedService, thread_id: string): Promise<string[]> {
  const body = { assistant_id: "agent", input: { gate: null }, if_not_exists: "create" };
  const values = await service.call("POST", `${AGENT}/threads/${thread_id}/runs/wait`, body);
  return (values as State["values"]).versions;
}

/** Up to fifty requests a second of five kinds; most are sent before those before them have been answered. */
export class Load {
  readonly failures: string[] = [];
  /** Versions that have executed short runs, in the order in which they ended. */
  readonly versions: string[] = [];
  requests = 0;
  slowest_ms = 0;
  readonly #service: DeployedService;
  readonly #threads: string[] = [];
  readonly #underWay = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  readonly #began_at = performance.now();

  constructor(service: DeployedService) {
    this.#service = service;
    this.#timer = setInterval(() => this.#next(), EVERY_MS);
  }

  /** @returns requests a second */
  async stop(): Promise<number> {
    clearInterval(this.#timer);
    const seconds = (performance.now() - this.#began_at) / 1000;
    await Promise.all(this.#underWay);
    return Math.round(this.requests / seconds);
  }

  #next(): void {
    if (this.#underWay.size >= MAX_UNDER_WAY) return;
    const asked_at = performance.now();
    const one = this.#ask(this.requests++ % 5)
      .catch((error: Error) => void this.failures.push(String(error.cause ?? error.message)))
      .then(() => {
        this.slowest_ms = Math.max(this.slowest_ms, Math.round(performance.now() - asked_at));
        this.#underWay.delete(one);
      });
    this.#underWay.add(one);
  }

  async #ask(kind: number): Promise<void> {
    const thread_id = this.#threads[this.requests % Math.max(1, this.#threads.length)];
    if (kind === 0 || thread_id === undefined) {
      const made = randomUUID();
      const versions = await runOn(this.#service, made);
      if (versions.length !== 1) throw new Error(`A run of a new thread left ${JSON.stringify(versions)}.`);
      this.versions.push(...versions);
      this.#threads.push(made);
    } else if (kind === 1) await this.#service.call("POST", `${AGENT}/threads`, {});
    else if (kind === 2) await this.#service.call("GET", `${AGENT}/threads/${thread_id}`);
    else if (kind === 3) await this.#service.call("POST", `${AGENT}/assistants/search`, {});
    else {
      const state = (await this.#service.call("GET", `${AGENT}/threads/${thread_id}/state`)) as State;
      if (state.values.versions.length !== 1) throw new Error(`A thread reads ${JSON.stringify(state.values)}.`);
    }
  }
}

/** A stream of a run that waits at a gate. */
export class OpenStream {
  readonly thread_id = randomUUID();
  readonly #text: Promise<string>;
  readonly #begun = Promise.withResolvers<void>();
  #count = 0;

  constructor(service: DeployedService, gate: string) {
    this.#text = this.#read(service, gate);
    this.#text.catch((error) => this.#begun.reject(error));
  }

  /** Resolves when its first events have come. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  /** All events, once the stream has ended by itself; rejects when it was cut. */
  async events(): Promise<SseEvent[]> {
    return parseSse(await this.#text);
  }

  async #read(service: DeployedService, gate: string): Promise<string> {
    const answer = await service.send("POST", `${AGENT}/threads/${this.thread_id}/runs/stream`, {
      assistant_id: "agent",
      input: { gate },
      if_not_exists: "create",
      stream_mode: ["custom", "values"],
    });
    if (answer.status !== 200 || !answer.body) throw new Error(`${answer.status}: ${await answer.text()}`);
    let text = "";
    for await (const chunk of answer.body.pipeThrough(new TextDecoderStream() as never)) {
      text += chunk;
      if (++this.#count === 3) this.#begun.resolve();
    }
    this.#begun.resolve();
    return text;
  }
}

/** What is missing in the events of a stream that has ended: its beginning, its end, and every number in between. */
export function whatIsMissing(events: readonly SseEvent[], version: string): unknown {
  const ids = events.map(({ id }) => id);
  const last = events.at(-1);
  const isWhole =
    ids.every((id, i) => id === String(i + 1)) &&
    events[0]?.event === "metadata" &&
    last?.event === "values" &&
    JSON.stringify(last.data.versions) === JSON.stringify([version]);
  return isWhole ? undefined : { ids, last };
}
