import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { agentServerRoutes } from "../../src/agent-server/contract/routes.ts";
import type { Random } from "../support/random.ts";

export interface FuzzRequest {
  method: string;
  path: string;
  /** Raw text; undefined without a body. */
  body: string | undefined;
  headers: Record<string, string>;
  /** The answer may take as long as a run does. */
  waits: boolean;
}

/** Ids that exist, by the name of the path parameter. */
export interface KnownIds {
  thread_id: string[];
  run_id: string[];
  assistant_id: string[];
  checkpoint_id: string[];
}

interface Route {
  method: string;
  path: string;
  operationId: string;
}

const ROUTES: Route[] = Object.values(agentServerRoutes).flatMap((group) => Object.values(group) as unknown as Route[]);

const GRAPHS = ["plain", "asks", "fails"];

/** Makes requests to all routes: well-formed ones, and ones that are wrong in every part. */
export class RequestMaker {
  readonly #random: Random;
  readonly #known: KnownIds;
  /** JSON values of all kinds, and texts that have broken servers before. */
  readonly #values: unknown[];

  constructor(random: Random, seed: number, known: KnownIds) {
    this.#random = random;
    this.#known = known;
    this.#values = [...fc.sample(fc.jsonValue({ maxDepth: 4 }), { seed, numRuns: 2000 }), ...NASTY];
  }

  next(): FuzzRequest {
    const route = this.#random.pick(ROUTES);
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(this.#id(name)));
    const hasBody = route.method !== "get" && this.#random.next() < 0.95;
    return {
      method: route.method.toUpperCase(),
      path: `${path}${this.#query(route)}`,
      body: hasBody ? this.#body(route) : undefined,
      headers:
        this.#random.next() < 0.1
          ? { "last-event-id": String(this.#random.pick(["-1", "0", "3", "x", "99999999"])) }
          : {},
      waits: /stream|wait|join|cancel|ag-ui|a2a/.test(route.path),
    };
  }

  #id(name: string): string {
    const known = this.#known[name as keyof KnownIds] ?? [];
    const kind = this.#random.next();
    if (kind < 0.8 && known.length > 0) return this.#random.pick(known);
    if (kind < 0.9) return randomUUID();
    return this.#random.pick([
      "x",
      "..",
      "%00",
      "null",
      "'; drop table runs; --",
      "ü".repeat(300),
      GRAPHS[0] as string,
    ]);
  }

  #query(route: Route): string {
    const names = [
      "limit",
      "offset",
      "status",
      "select",
      "wait",
      "action",
      "xray",
      "recurse",
      "subgraphs",
      "stream_mode",
      "before",
      "version",
    ];
    if (route.method === "get" || this.#random.next() < 0.2) {
      const count = this.#random.integer(0, 2);
      const pairs = Array.from(
        { length: count },
        () => `${this.#random.pick(names)}=${encodeURIComponent(this.#text())}`,
      );
      return pairs.length > 0 ? `?${pairs.join("&")}` : "";
    }
    return "";
  }

  #text(): string {
    return this.#random.pick([
      "1",
      "0",
      "10",
      "-1",
      "true",
      "values",
      "pending",
      "run_id",
      "interrupt",
      "",
      "nan",
      "[",
      '["values"]',
      "1e9",
    ]);
  }

  #body(route: Route): string {
    const kind = this.#random.next();
    if (kind < 0.03)
      return this.#random.pick(['{"a":', "[1,2", "nul", '{"a":1}}', "\u0000", '"\\ud800"', "[".repeat(5000)]);
    if (kind < 0.06) return '{"__proto__":{"polluted":true},"metadata":{"__proto__":{"x":1}}}';
    if (kind < 0.12) return JSON.stringify(this.#random.pick(this.#values));
    const body = this.#wellFormed(route.operationId);
    if (kind > 0.6 && !Array.isArray(body)) this.#spoil(body);
    return JSON.stringify(body);
  }

  /** Replaces, removes or adds a field. */
  #spoil(body: Record<string, unknown>): void {
    const field = this.#random.pick([...Object.keys(body), ...ALL_FIELDS]);
    if (this.#random.next() < 0.2) delete body[field];
    else body[field] = this.#random.pick(this.#values);
  }

  #agentInput(): Record<string, unknown> {
    const { pick } = this.#random;
    const value = () => pick(this.#values);
    return {
      threadId: this.#id("thread_id"),
      runId: "r",
      protocolVersion: pick([undefined, "1.0"]),
      state: pick<unknown>([{ x: value() }, {}, null]),
      messages: [
        { id: "u", role: "user", content: pick<unknown>(["Hi", [{ type: "text", text: "Hi" }], value()]) },
        {
          id: "a",
          role: "assistant",
          toolCalls: [{ id: "c", function: { name: "f", arguments: JSON.stringify(value()) } }],
        },
        { id: "t", role: "tool", toolCallId: "c", content: "done" },
      ].slice(this.#random.integer(0, 3)),
      tools: pick<unknown>([[], [{ name: "f", parameters: value() }]]),
      forwardedProps: pick<unknown>([
        {},
        { command: { resume: value() } },
        { config: { configurable: { x: value() } } },
      ]),
      resume: pick<unknown>([undefined, [{ interruptId: "i", status: "resolved", payload: value() }]]),
    };
  }

  #wellFormed(operation: string): Record<string, unknown> {
    const { pick, integer, next } = this.#random;
    const assistant_id = next() < 0.8 ? pick(GRAPHS) : this.#id("assistant_id");
    const run = {
      assistant_id,
      input: pick([{ x: 1 }, { x: null }, {}, null]),
      stream_mode: pick(["values", ["updates", "debug"], "messages", "events"]),
      ...(next() < 0.2 && { command: pick<unknown>([{ resume: 1 }, { goto: "node" }, { update: { x: 2 } }, {}]) }),
      ...(next() < 0.3 && { multitask_strategy: pick(["enqueue", "reject", "interrupt", "rollback"]) }),
      ...(next() < 0.3 && { if_not_exists: "create" }),
      ...(next() < 0.1 && { after_seconds: pick([0.01, 3600]) }),
      ...(next() < 0.2 && { checkpoint_id: this.#id("checkpoint_id") }),
    };
    if (operation === "runAgent") return this.#agentInput();
    if (/Run/.test(operation)) return operation === "createRunBatch" ? ([run, run] as never) : run;
    const common = { metadata: pick([{}, { a: 1 }, { graph_id: pick(GRAPHS) }]), limit: integer(1, 20) };
    if (/History|State/.test(operation)) {
      return {
        ...common,
        values: pick<unknown>([{ x: 1 }, null, []]),
        as_node: pick(["node", "nope", undefined]),
        checkpoint: {},
      };
    }
    return {
      ...common,
      graph_id: pick(GRAPHS),
      name: "n",
      if_exists: pick(["raise", "do_nothing"]),
      version: integer(1, 3),
    };
  }
}

const ALL_FIELDS = [
  ...["threadId", "runId", "state", "messages", "tools", "context", "forwardedProps", "resume"],
  "metadata",
  "config",
  "context",
  "limit",
  "offset",
  "select",
  "sort_by",
  "values",
  "ids",
  "status",
  "before",
].concat([
  "checkpoint",
  "checkpoint_id",
  "as_node",
  "interrupt_before",
  "durability",
  "webhook",
  "extract",
  "supersteps",
  "thread_id",
  "ttl",
]);

export const NASTY: unknown[] = [
  "\u0000",
  "\ud800",
  "a".repeat(100_000),
  1e308,
  -1,
  2 ** 53,
  "__proto__",
  { constructor: { prototype: {} } },
].concat([
  [[[[[[]]]]]],
  { configurable: { thread_id: "x", __pregel_x: 1, checkpoint_id: "nope" } },
  { "": "" },
  "'; drop table runs; --",
] as never[]);
