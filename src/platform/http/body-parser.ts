import type { HonoRequest } from "hono";
import { parseUntrusted } from "../lib/json/json.ts";
import { WorkerRpc } from "../lib/worker-rpc.ts";

/** Larger bodies are parsed in a worker thread. Sending a smaller body to a thread takes longer than parsing it. */
const LARGE_BYTES = 256 * 1024;

/** Longer texts of this service are parsed in a worker thread if little is read from them, because the result is small. */
const LARGE_LENGTH = 32 * 1024;

type Body = Uint8Array | string;

export class BodyParser {
  readonly #worker = new WorkerRpc<typeof bodyOperations>({
    entry: new URL("./body-parser-thread", import.meta.url),
    name: "large bodies",
    // By default, V8 lets the young generation grow to 100 MB and does not shrink it.
    resourceLimits: { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 1024 },
  });

  /** Returns undefined for an empty body. @throws JsonError */
  async parse(request: HonoRequest): Promise<unknown> {
    const length = request.header("content-length");
    if (length !== undefined && Number(length) <= LARGE_BYTES) return parseText(await request.text());
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (bytes.length <= LARGE_BYTES) return parseBody(bytes);
    return this.#worker.call("parse", [bytes], [bytes.buffer]);
  }

  /**
   * Finds those `names` that are keys of the outermost object. The body is not parsed; {@link parse} can still be called afterwards.
   *
   * @returns undefined if the body is not an object
   */
  async findKeys(request: HonoRequest, names: string[]): Promise<string[] | undefined> {
    const length = request.header("content-length");
    if (length !== undefined && Number(length) <= LARGE_BYTES) return findKeys(await request.text(), names);
    const bytes = new Uint8Array(await request.arrayBuffer());
    return bytes.length <= LARGE_BYTES ? findKeys(bytes, names) : this.#worker.call("findKeys", [bytes, names]);
  }

  /** @throws JsonError */
  async parseText(text: string): Promise<unknown> {
    return text.length <= LARGE_BYTES ? parseText(text) : this.#worker.call("parse", [text]);
  }

  /** Returns the last items of lists in JSON text of this service, by the keys of its outermost object; none for other values. */
  async lastItems<Key extends string>(text: string, counts: Record<Key, number>): Promise<Record<Key, unknown[]>> {
    return text.length <= LARGE_LENGTH ? lastItems(text, counts) : this.#worker.call("lastItems", [text, counts]);
  }

  stop(): Promise<void> {
    return this.#worker.terminate();
  }
}

/** @throws JsonError */
const parseBody = (body: Body): unknown => parseText(textOf(body));

const textOf = (body: Body): string => (typeof body === "string" ? body : new TextDecoder().decode(body));

function findKeys(body: Body, names: string[]): string[] | undefined {
  const text = textOf(body);
  if (!/^\s*\{/.test(text)) return undefined;
  const found: string[] = [];
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) {
      const start = i + 1;
      for (i++; i < text.length && text.charCodeAt(i) !== 0x22; i++) if (text.charCodeAt(i) === 0x5c) i++;
      const name =
        depth === 1 ? names.find((each) => each.length === i - start && text.startsWith(each, start)) : undefined;
      if (name !== undefined && /^\s*:/.test(text.slice(i + 1, i + 20))) found.push(name);
    } else if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) depth--;
  }
  return found;
}

const parseText = (text: string): unknown => (text.trim() === "" ? undefined : parseUntrusted(text));

function lastItems(text: string, counts: Record<string, number>): Record<string, unknown[]> {
  const object = JSON.parse(text) as Record<string, unknown> | null;
  const itemsOf = (value: unknown, count: number) => (Array.isArray(value) ? value.slice(-count) : []);
  return Object.fromEntries(Object.entries(counts).map(([key, count]) => [key, itemsOf(object?.[key], count)]));
}

/** The operations of body-parser-thread.ts. */
export const bodyOperations = { parse: parseBody, findKeys, lastItems };
