import type { Caller } from "../../platform/contract/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import { newId } from "../../platform/lib/ids.ts";
import { IncomingUpload } from "./incoming-upload.ts";
import { storeUpload } from "./store-upload.ts";

/** Uploads in progress. An upload writes to the database and takes locks only after its last byte has arrived. */
export class Uploads {
  readonly #database: Database;
  readonly #open = new Map<string, { upload: IncomingUpload; caller: Caller }>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns the ticket that identifies the upload in the following calls. */
  async begin(caller: Caller, limit_bytes: number): Promise<string> {
    const ticket = newId();
    this.#open.set(ticket, { caller, upload: new IncomingUpload(limit_bytes) });
    return ticket;
  }

  async push(ticket: string, chunk: Uint8Array): Promise<void> {
    this.#find(ticket).upload.push(chunk);
  }

  /**
   * Stores all rows, or none.
   *
   * @returns the log fields of the upload, and the response as JSON: it may have 16 MB of metadata, and the main thread sends it
   *   without parsing it
   */
  async finish(ticket: string): Promise<{ dataset_id: string; session_id: string; rows: number; response: string }> {
    const { upload, caller } = this.#find(ticket);
    try {
      const checked = upload.finish();
      const rows = checked.staging.count;
      const result = await storeUpload(this.#database, caller, checked);
      const { dataset, experiment } = result;
      return { dataset_id: dataset.id, session_id: experiment.id, rows, response: JSON.stringify(result) };
    } finally {
      await this.abandon(ticket);
    }
  }

  /** Discards the data of an upload that has finished or was rejected, or whose client has disconnected. */
  async abandon(ticket: string): Promise<void> {
    this.#open.get(ticket)?.upload.discard();
    this.#open.delete(ticket);
  }

  #find(ticket: string): { upload: IncomingUpload; caller: Caller } {
    const found = this.#open.get(ticket);
    if (!found) throw new Error(`The upload ${ticket} does not exist: it has already finished or was discarded.`);
    return found;
  }
}
