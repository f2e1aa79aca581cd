import type { Tx } from "../../platform/database/database.ts";
import type { CheckpointWrite, HostRequest } from "../graph-hosts/host.ts";
import { insertCheckpoint, insertWrites } from "../storage/checkpoint-inserts.ts";
import type { RunRow } from "../storage/schema.ts";
import { readCheckpoints } from "./checkpoint-reads.ts";
import type { Journal } from "./journal.ts";
import { type FetchAs, RunRequests } from "./run-requests.ts";
import { userOf } from "./run-user.ts";
import { answerTokenRequest, refuseUnlessHeld, type TokenRequestOptions } from "./token-requests.ts";

export interface HostRequestOptions extends TokenRequestOptions {
  /** How graphs send requests to this server. */
  fetchAs: FetchAs;
}

/** What the graph of a run and its checkpointer ask for. Writes pass the fence, reads need none. */
export class HostRequests {
  readonly #run: RunRow;
  readonly #journal: Journal;
  readonly #options: HostRequestOptions;
  readonly #fetches: RunRequests;

  constructor(run: RunRow, journal: Journal, options: HostRequestOptions) {
    this.#run = run;
    this.#journal = journal;
    this.#options = options;
    this.#fetches = new RunRequests(options.fetchAs);
  }

  async answer(request: HostRequest): Promise<unknown> {
    const { database } = this.#options;
    switch (request.op) {
      case "put":
      case "put_writes":
        return this.#journal.commit((tx) => this.#insert(tx, request));
      case "get":
      case "list":
        // A run reads what it has written, also what it did not wait for.
        await this.#journal.written();
        return readCheckpoints(database, request);
      case "token":
        return answerTokenRequest(this.#run, request, this.#options);
      case "fetch":
        await refuseUnlessHeld(database, this.#run);
        return this.#fetches.answer(userOf(this.#run), request);
      case "fetch_read":
      case "fetch_cancel":
        return this.#fetches.answer(userOf(this.#run), request);
      case "delete_thread":
        throw new Error("A running graph cannot delete threads: use DELETE /threads/{thread_id}.");
    }
  }

  /** Stores something without an answer. */
  store(write: CheckpointWrite): void {
    this.#journal.store((tx) => this.#insert(tx, write));
  }

  /** Ends the requests to this server that are open: the run is over. */
  close(): void {
    this.#fetches.closeAll();
  }

  #insert(tx: Tx, write: CheckpointWrite): Promise<void> {
    if (write.op === "put") return insertCheckpoint(tx, this.#run, write.checkpoint);
    return insertWrites(tx, this.#run, write, write.writes);
  }
}
