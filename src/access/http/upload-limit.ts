import type { Context } from "hono";
import type { Caller } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import type { Env } from "../../platform/http/route.ts";

/** Maximum bytes of request bodies per minute in this process; undefined if they are not limited. */
export interface UploadLimits {
  per_user: number | undefined;
  per_workspace: number | undefined;
}

interface Budget {
  key: string;
  max: number | undefined;
  sender: string;
  setting: string;
}

const MINUTE_MS = 60_000;

/** Above this number of entries, those that are used no longer are removed. */
const MAX_ENTRIES = 10_000;

/**
 * Limits the bytes that users and workspaces send in request bodies. A budget of one minute is refilled continuously. While it is used up,
 * requests with a body are refused; the request that uses it up is accepted.
 */
export class UploadLimit {
  readonly #max: UploadLimits;
  /** The used bytes of budgets at a time in ms. */
  readonly #used = new Map<string, { bytes: number; at: number }>();

  constructor(max: UploadLimits) {
    this.#max = max;
  }

  /**
   * Checks and counts the body of a request. A body without a `content-length` is counted while it is read.
   *
   * @throws ApiError upload_limit_reached, with `Retry-After`, before the request has any effect
   */
  admit(context: Context<Env>, { tenant_id, user_id }: Caller): void {
    const { per_user, per_workspace } = this.#max;
    if (per_user === undefined && per_workspace === undefined) return;
    const { raw } = context.req;
    const length = context.req.header("content-length");
    if (length === "0" || (length === undefined && raw.body === null)) return;
    const budgets: Budget[] = [
      {
        key: `${tenant_id} ${user_id}`,
        max: per_user,
        sender: `The user ${user_id}`,
        setting: "THREADMILL_MAX_UPLOAD_PER_USER",
      },
      { key: tenant_id, max: per_workspace, sender: "The workspace", setting: "THREADMILL_MAX_UPLOAD_PER_WORKSPACE" },
    ];
    for (const { key, max, sender, setting } of budgets) {
      const excess = max === undefined ? -1 : this.#usedOf(key, max) - max;
      if (excess < 0) continue;
      const retry_after_s = Math.floor((excess / (max as number)) * 60) + 1;
      const headers = { "retry-after": String(retry_after_s) };
      throw Object.assign(new ApiError("upload_limit_reached", { sender, max, setting }), { headers });
    }
    const count = (bytes: number) => {
      for (const { key, max } of budgets) if (max !== undefined) this.#add(key, max, bytes);
    };
    if (length !== undefined) {
      count(Number(length));
      return;
    }
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        count(chunk.byteLength);
        controller.enqueue(chunk);
      },
    });
    context.req.raw = new Request(raw, { body: raw.body?.pipeThrough(counted), duplex: "half" } as RequestInit);
  }

  #usedOf(key: string, max: number): number {
    const { bytes, at } = this.#used.get(key) ?? { bytes: 0, at: 0 };
    return Math.max(0, bytes - (max * (performance.now() - at)) / MINUTE_MS);
  }

  #add(key: string, max: number, bytes: number): void {
    this.#used.set(key, { bytes: this.#usedOf(key, max) + bytes, at: performance.now() });
    if (this.#used.size <= MAX_ENTRIES) return;
    for (const [other, { at }] of this.#used) if (performance.now() - at > 10 * MINUTE_MS) this.#used.delete(other);
  }
}
