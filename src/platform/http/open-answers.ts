import type { Caller } from "../contract/caller.ts";
import { ApiError } from "../errors.ts";

/** Requests whose answers may stay open for as long as a run takes. */
const STAYS_OPEN = /\/(stream|wait|join)(\/|$)/;

/** Counts the answers that each user holds open in this process: each has its memory, and a user could open any number of them. */
export class OpenAnswers {
  readonly #most: number;
  readonly #counts = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** @throws ApiError too_many_open before anything is done for a request whose answer would be one too many */
  check(caller: Caller, path: string): void {
    const { user_id } = caller;
    if (STAYS_OPEN.test(path) && this.#countOf(caller) >= this.#most)
      throw new ApiError("too_many_open", { user_id, most: this.#most });
  }

  /** Counts one, until the returned function is called. */
  enter(caller: Caller): () => void {
    this.#count(caller, 1);
    return () => this.#count(caller, -1);
  }

  #countOf = (caller: Caller): number => this.#counts.get(idOf(caller)) ?? 0;

  #count(caller: Caller, change: number): void {
    const count = this.#countOf(caller) + change;
    if (count > 0) this.#counts.set(idOf(caller), count);
    else this.#counts.delete(idOf(caller));
  }
}

const idOf = ({ tenant_id, user_id }: Caller): string => `${tenant_id} ${user_id}`;
