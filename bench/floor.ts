/**
 * The floor: LangGraph in a separate process, without HTTP and with a MemorySaver. Takes one measurement and prints its values as JSON.
 *
 * Usage: node bench/floor.ts '{"measurement": "...", "sizes": {...}, "spawned_at": <ms since 1970>}'
 */
import { randomUUID } from "node:crypto";
import { MemorySaver, type Pregel } from "@langchain/langgraph";
import type { Sizes } from "./measurement.ts";
import { floorMeasurements } from "./measurements/floor-measurements.ts";
import type { State, StreamTimes, Target, Usage } from "./target.ts";

/** The argument of the process. */
export interface FloorOptions {
  measurement: string;
  sizes: Sizes;
  /** Time of the spawn, in ms since 1970. */
  spawned_at: number;
}

// biome-ignore lint/suspicious/noExplicitAny: graphs of several states
type Graph = Pregel<any, any>;

const GRAPHS = ["step", "lines", "messages", "events", "steps"];

class InProcessTarget implements Target {
  readonly ready_ms: number;
  readonly #spawned_at: number;
  readonly #graphs: ReadonlyMap<string, Graph>;
  readonly #saver: MemorySaver;

  constructor(graphs: ReadonlyMap<string, Graph>, saver: MemorySaver, spawned_at: number) {
    this.#graphs = graphs;
    this.#saver = saver;
    this.#spawned_at = spawned_at;
    this.ready_ms = this.age_ms();
  }

  age_ms(): number {
    return performance.timeOrigin + performance.now() - this.#spawned_at;
  }

  async run(graph: string, input: object, thread_id: string): Promise<State> {
    return (await this.#get(graph).invoke(input, { configurable: { thread_id } })) as State;
  }

  async runStateless(graph: string, input: object): Promise<State> {
    const thread_id = randomUUID();
    const state = await this.run(graph, input, thread_id);
    await this.#saver.deleteThread(thread_id);
    return state;
  }

  async streamCustom(graph: string, input: object): Promise<StreamTimes> {
    const thread_id = randomUUID();
    const times = { sent_at: performance.now(), first_at: 0, last_at: 0, events: 0, events_after_first: 0 };
    for await (const _ of await this.#get(graph).stream(input, { configurable: { thread_id }, streamMode: "custom" })) {
      times.last_at = performance.now();
      if (times.events === 0) times.first_at = times.last_at;
      else times.events_after_first += 1;
      times.events += 1;
    }
    await this.#saver.deleteThread(thread_id);
    return times;
  }

  usage(): Usage {
    const { user, system } = process.cpuUsage();
    return { cpu_ms: (user + system) / 1000, rss_mb: process.memoryUsage.rss() / 1_000_000 };
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #get(name: string): Graph {
    const graph = this.#graphs.get(name);
    if (!graph) throw new Error(`There is no graph "${name}".`);
    return graph;
  }
}

const options = JSON.parse(process.argv[2] ?? "{}") as FloorOptions;
const measurement = floorMeasurements.find(({ name }) => name === options.measurement);
if (!measurement) throw new Error(`There is no measurement "${options.measurement}".`);
const saver = new MemorySaver();
const graphs = new Map<string, Graph>();
for (const name of GRAPHS) {
  const { graph } = (await import(`./graphs/${name}.ts`)) as { graph: Graph };
  graph.checkpointer = saver;
  graphs.set(name, graph);
}
const values = await measurement.measure(
  async () => new InProcessTarget(graphs, saver, options.spawned_at),
  options.sizes,
);
console.log(JSON.stringify(values));
