import type { HonoRequest } from "hono";
import { parseUntrusted } from "../lib/json/json.ts";
import { WorkerRpc } from "../lib/worker-rpc.ts";

/** Larger bodies are parsed in another thread. Sending a smaller body to a thread takes longer than parsing it. */
const LARGE_BYTES = 256 * 1024;

type Body = Uint8Array | string;

export class BodyParser {
  readonly #worker = new WorkerRpc<typeof bodyOperations>({
    entry: new URL("./body-parser-thread", import.meta.url),
    name: "large bodies",
    // By default, V8 lets the young generation grow to 100 MB and does not shrink it.
    resourceLimits: { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 1024 },
  });

  /** Returns undefined for a request without a body. Throws a JsonError. */
  async parse(request: HonoRequest): Promise<unknown> {
    const length = request.header("content-length");
    if (length !== undefined && Number(length) <= LARGE_BYTES) return parseText(await request.text());
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (bytes.length <= LARGE_BYTES) return parseBody(bytes);
    return this.#worker.call("parse", [bytes], [bytes.buffer]);
  }

  /** @throws JsonError */
  async parseText(text: string): Promise<unknown> {
    return text.length <= LARGE_BYTES ? parseText(text) : this.#worker.call("parse", [text]);
  }

  stop(): Promise<void> {
    return this.#worker.terminate();
  }
}

/** @throws JsonError */
const parseBody = (body: Body): unknown => parseText(typeof body === "string" ? body : new TextDecoder().decode(body));

const parseText = (text: string): unknown => (text.trim() === "" ? undefined : parseUntrusted(text));

/** Runs in body-parser-thread.ts. */
export const bodyOperations = { parse: parseBody };
