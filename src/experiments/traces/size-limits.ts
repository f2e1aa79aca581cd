import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ApiError, type InvalidPart } from "../../platform/errors.ts";
import { Signal } from "../../platform/lib/signal.ts";
import type { TraceChanges } from "./operation.ts";

export const MAX_FIELD_BYTES = 20 * 2 ** 20;
const MAX_ATTACHMENT_BYTES = 50 * 2 ** 20;

const LIMITED = ["inputs", "outputs", "events", "extra", "error", "serialized"] as const;

export const tooLarge = (limit_bytes: number): string => `must be at most ${limit_bytes} bytes`;

/**
 * Removes fields and attachments that exceed their limit. The runs are stored without them: official clients do not send a run again
 * after an error, so a refused run would be lost.
 *
 * @returns the reasons, with the ids of the runs
 */
export function removeTooLarge(changes: Pick<TraceChanges, "operations" | "attachments">): InvalidPart[] {
  const removed: InvalidPart[] = [];
  const report = (loc: string[], limit_bytes: number) =>
    removed.push({ loc: ["body", ...loc], msg: `Value error, ${tooLarge(limit_bytes)}`, type: "value_error" });
  for (const { id, fields } of changes.operations)
    for (const name of LIMITED) {
      if (fields[name] === undefined || Buffer.byteLength(JSON.stringify(fields[name])) <= MAX_FIELD_BYTES) continue;
      delete fields[name];
      report([id, name], MAX_FIELD_BYTES);
    }
  const isSmall = ({ data }: TraceChanges["attachments"][number]) => data.byteLength <= MAX_ATTACHMENT_BYTES;
  for (const attachment of changes.attachments)
    if (!isSmall(attachment)) report([attachment.run_id, "attachments", attachment.name], MAX_ATTACHMENT_BYTES);
  changes.attachments = changes.attachments.filter(isSmall);
  return removed;
}

/** The maximum total size of unpacked bodies that are stored concurrently. A larger body is stored alone. */
const MAX_ACTIVE_BYTES = 8 * 2 ** 20;

/** After a larger body is stored, the garbage is collected: V8 would otherwise keep 200 MB of strings. */
const COLLECTED_BYTES = 4 * 2 ** 20;

/**
 * Unpacks bodies one at a time. Small bodies are stored concurrently, because they share a commit. Bodies that wait for their turn
 * remain packed. Without this limit, 8 bodies of 20 MiB took 660 MB.
 */
export class BodyTurns {
  #last: Promise<void> = Promise.resolve();
  #active = 0;
  #active_bytes = 0;
  readonly #released = new Signal();
  readonly #collectGarbage: () => void;

  constructor() {
    setFlagsFromString("--expose-gc");
    this.#collectGarbage = runInNewContext("gc");
  }

  /**
   * @param sent the packed body, whose memory is freed
   * @param deadline_ms the time (`Date.now()`) after which the response has already been sent
   * @throws ApiError when the turn comes after the deadline
   */
  async use<T>(
    sent: Uint8Array,
    deadline_ms: number,
    unpack: () => Uint8Array,
    store: (body: Uint8Array) => Promise<T>,
  ): Promise<T> {
    const { promise, resolve: endTurn } = Promise.withResolvers<void>();
    const previous = this.#last;
    this.#last = promise;
    await previous;
    try {
      if (Date.now() > deadline_ms)
        throw new ApiError("unavailable", {
          reason: "The request was not processed in time. Send it again later.",
        });
      const body = unpack();
      const bytes = body.byteLength;
      while (this.#active > 0 && this.#active_bytes + bytes > MAX_ACTIVE_BYTES) await this.#released.wait();
      this.#active++;
      this.#active_bytes += bytes;
      // Not awaited here: the next turn may begin.
      return store(body).finally(() => {
        this.#active--;
        this.#active_bytes -= bytes;
        this.#released.notify();
        free(sent);
        free(body);
        if (bytes > COLLECTED_BYTES) setImmediate(this.#collectGarbage);
      });
    } catch (error) {
      free(sent);
      throw error;
    } finally {
      endTurn();
    }
  }
}

/** Frees the memory of a buffer that nothing else uses. The garbage collector would free it much later: the wrapper objects are small. */
function free({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && byteLength > 0 && byteLength === buffer.byteLength) buffer.transfer(0);
}
