import { randomUUID } from "node:crypto";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { randomOf } from "../support/random.ts";
import type { TestService } from "../support/service.ts";

export interface TestRun {
  id: string;
  trace_id: string;
  parent_run_id?: string;
  dotted_order: string;
  name: string;
  run_type: string;
  start_time: string;
  [field: string]: unknown;
}

const START_MS = Date.UTC(2026, 0, 31, 12);

/** A run as the official clients post it, `at` milliseconds after a fixed time. */
export function run(fields: Record<string, unknown> & { at?: number; parent?: TestRun } = {}): TestRun {
  const { at = 0, parent, ...rest } = fields;
  const id = (rest.id as string | undefined) ?? randomUUID();
  const start_time = new Date(START_MS + at).toISOString().replace("Z", "000Z");
  const segment = `${start_time.replaceAll(/[-:.]/g, "")}${id}`;
  return {
    id,
    trace_id: parent?.trace_id ?? id,
    ...(parent && { parent_run_id: parent.id }),
    dotted_order: parent ? `${parent.dotted_order}.${segment}` : segment,
    name: "run",
    run_type: "chain",
    start_time,
    end_time: new Date(START_MS + at + 1_000).toISOString(),
    inputs: { question: "?" },
    outputs: { answer: "!" },
    session_name: "traces",
    ...rest,
  };
}

/** A multipart body. A part is JSON, or `[bytes, content type]`. */
export function multipart(parts: Record<string, unknown>, boundary = "----boundary"): Buffer {
  const chunks = Object.entries(parts).flatMap(([name, value]) => {
    const [data, type] =
      Array.isArray(value) && value[0] instanceof Uint8Array
        ? [value[0], value[1]]
        : [Buffer.from(JSON.stringify(value)), "application/json"];
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}; length=${data.length}\r\n\r\n`;
    return [Buffer.from(head), data, Buffer.from("\r\n")];
  });
  return Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)]);
}

const FIELDS = ["inputs", "outputs", "events", "extra", "error", "serialized"];

/** The parts of runs, large fields apart, as the official clients send them. */
export function partsOf(kind: "post" | "patch", runs: readonly Partial<TestRun>[]): Record<string, unknown> {
  const entries = runs.flatMap((each) => {
    const main = Object.entries(each).filter(([name]) => !FIELDS.includes(name));
    const fields = FIELDS.filter((name) => each[name] !== undefined);
    return [
      [`${kind}.${each.id}`, Object.fromEntries(main)],
      ...fields.map((name) => [`${kind}.${each.id}.${name}`, each[name]]),
    ];
  });
  return Object.fromEntries(entries);
}

const ENCODERS = { gzip: gzipSync, zstd: zstdCompressSync };

/** Sends bodies as the official clients do. */
export class TraceClient {
  readonly #service: TestService;
  readonly #headers: Record<string, string>;

  constructor(service: TestService, headers: Record<string, string> = {}) {
    this.#service = service;
    this.#headers = headers;
  }

  async send(
    method: string,
    path: string,
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
  ) {
    const request = new Request(`http://localhost${path}`, { method, body, headers: { ...this.#headers, ...headers } });
    const response = await this.#service.threadmill.fetch(request);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const value = isJson ? JSON.parse(Buffer.from(bytes).toString()) : undefined;
    return { status: response.status, headers: response.headers, bytes, body: value };
  }

  sendParts(parts: Record<string, unknown>, encoding?: keyof typeof ENCODERS) {
    const body = multipart(parts);
    const headers = { "content-type": "multipart/form-data; boundary=----boundary" };
    if (!encoding) return this.send("POST", "/api/v1/runs/multipart", new Uint8Array(body), headers);
    const encoded = new Uint8Array(ENCODERS[encoding](body));
    return this.send("POST", "/api/v1/runs/multipart", encoded, { ...headers, "content-encoding": encoding });
  }

  post(...runs: TestRun[]) {
    return this.sendParts(partsOf("post", runs));
  }

  json(method: string, path: string, body: unknown) {
    return this.send(method, path, JSON.stringify(body), { "content-type": "application/json" });
  }

  async get(path: string) {
    return this.#service.request("GET", `/api/v1${path}`, undefined, this.#headers);
  }

  async read(id: string) {
    return (await this.get(`/runs/${id}`)).body;
  }

  async query(body: object) {
    return (await this.#service.request("POST", "/api/v1/runs/query", body, this.#headers)).body.runs;
  }

  async session(name: string) {
    const [found] = (await this.get(`/sessions?include_stats=true&name=${encodeURIComponent(name)}`)).body;
    return found;
  }
}

export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = randomOf(seed);
  const rest = [...items];
  return items.map(() => rest.splice(random.integer(0, rest.length - 1), 1)[0] as T);
}
