import { ApiError } from "../../platform/errors.ts";
import { withTimeout } from "../../platform/lib/signal.ts";

/** The limit of a body before decompression. After decompression, the limit of uploads applies. */
const MAX_SENT_BYTES = 64 * 2 ** 20;

/** Above this limit of all bodies that are received but not stored yet, the server stops reading requests of all workspaces. */
const MAX_PENDING_BYTES = 4 * MAX_SENT_BYTES;

/**
 * Above this limit, the server stops reading requests of the workspace until a body is stored. Without stored bodies to wait for, it
 * reads the oldest request only. This leaves room for other workspaces, and 8 bodies of 20 MiB take 80 MB less than all at once.
 */
const MAX_PENDING_BYTES_OF_WORKSPACE = MAX_SENT_BYTES;

/** The Python client waits 10 s for a response. The time in which the body arrives does not count. */
const MAX_WAIT_MS = 8_000;

const FIRST_BYTES = 64 * 2 ** 10;

const overloaded = () =>
  new ApiError("unavailable", {
    reason: "The service is receiving more traces than it can store. Send the request again later.",
  });

interface ReceivedBody {
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** The `content-length` of the request. */
  length: number | undefined;
}

/** The requests of a workspace. */
interface Workspace {
  pending_bytes: number;
  /** The requests whose body has not arrived completely, oldest first. */
  reading: Set<ReceivedBody>;
  /** The number of complete bodies that are not stored yet. */
  storing: number;
}

/** The bodies of ingestion requests in memory, from their first byte until the worker thread is done with them. */
export class PendingBodies {
  readonly #max_wait_ms: number;
  /** The sums of all workspaces. */
  readonly #all: Workspace = newWorkspace();
  /** Resolves when a body has been read or released, so that waiting requests check again whether there is room. */
  #changed = Promise.withResolvers<void>();
  readonly #workspaces = new Map<string, Workspace>();

  constructor(max_wait_ms = MAX_WAIT_MS) {
    this.#max_wait_ms = max_wait_ms;
  }

  /**
   * Reads a body and calls `work` with it.
   *
   * @param work receives the only reference to the body, and the time (`Date.now()`) after which its result is not sent
   * @throws ApiError when this body or all bodies together are too large, or when there is no room or no result in time
   */
  async use<T>(
    tenant_id: string,
    received: ReceivedBody,
    work: (body: Uint8Array, deadline_ms: number) => Promise<T>,
  ): Promise<T> {
    const workspace = this.#workspaces.get(tenant_id) ?? newWorkspace();
    this.#workspaces.set(tenant_id, workspace);
    const both = [workspace, this.#all];
    for (const { reading } of both) reading.add(received);
    let bytes = 0;
    let isStoring = false;
    let left_ms = this.#max_wait_ms;
    const add = async (count: number) => {
      bytes += count;
      for (const sums of both) sums.pending_bytes += count;
      if (bytes > MAX_SENT_BYTES) throw new ApiError("body_too_large", { limit_bytes: MAX_SENT_BYTES });
      left_ms = await this.#waitForRoom(workspace, received, left_ms);
    };
    const release = () => {
      for (const sums of both) {
        sums.pending_bytes -= bytes;
        if (isStoring) sums.storing--;
      }
      finishReading();
      if (workspace.pending_bytes === 0 && workspace.reading.size === 0) this.#workspaces.delete(tenant_id);
    };
    const finishReading = () => {
      for (const { reading } of both) reading.delete(received);
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    };
    let working: Promise<T>;
    try {
      const body = await readBody(received, add);
      isStoring = true;
      for (const sums of both) sums.storing++;
      finishReading();
      working = work(body, Date.now() + left_ms);
    } catch (error) {
      release();
      throw error;
    }
    // After the timeout, the body stays in memory until the worker thread is done with it.
    working.then(release, release);
    const result = await withTimeout(working, left_ms);
    if (result === undefined) throw overloaded();
    return result;
  }

  /** @returns the part of `left_ms` that is left. @throws ApiError when no time is left and there is no room */
  async #waitForRoom(workspace: Workspace, received: ReceivedBody, left_ms: number): Promise<number> {
    const hasRoom = (sums: Workspace, max_bytes: number) =>
      sums.pending_bytes <= max_bytes || (sums.storing === 0 && sums.reading.values().next().value === received);
    const started_at = Date.now();
    for (;;) {
      if (hasRoom(workspace, MAX_PENDING_BYTES_OF_WORKSPACE) && hasRoom(this.#all, MAX_PENDING_BYTES)) break;
      const remaining_ms = started_at + left_ms - Date.now();
      if (remaining_ms <= 0) throw overloaded();
      await withTimeout(this.#changed.promise, remaining_ms);
    }
    return Math.max(0, started_at + left_ms - Date.now());
  }
}

function newWorkspace(): Workspace {
  return { pending_bytes: 0, reading: new Set(), storing: 0 };
}

/** Returns the body in one buffer, which can be transferred to the worker thread. */
async function readBody(
  { chunks, length = Number.POSITIVE_INFINITY }: ReceivedBody,
  add: (bytes: number) => Promise<void>,
): Promise<Uint8Array> {
  let body = Buffer.allocUnsafeSlow(0);
  let end = 0;
  /** Allocated memory takes no space until it is written to. `transfer(0)` frees the old buffer without the garbage collector. */
  const resize = (size: number) => {
    const smaller = body;
    body = Buffer.allocUnsafeSlow(size);
    smaller.copy(body, 0, 0, end);
    (smaller.buffer as ArrayBuffer).transfer(0);
  };
  for await (const chunk of chunks) {
    const needed = end + chunk.byteLength;
    if (needed > body.length) resize(Math.max(needed, Math.min(Math.max(2 * body.length, FIRST_BYTES), length)));
    body.set(chunk, end);
    end = needed;
    await add(chunk.byteLength);
  }
  if (end < body.length) resize(end);
  return body;
}
