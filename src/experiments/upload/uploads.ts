import type { Caller } from "../../platform/contract/caller.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { ExperimentsContext } from "../context.ts";
import type { UploadResult } from "../contract/upload.ts";
import { storeUpload } from "./store.ts";
import { Upload } from "./upload.ts";

/** Uploads that are arriving. Until the last byte is there nothing of one is in the database, and no lock is held. */
export class Uploads {
  readonly #context: ExperimentsContext;
  readonly #arriving = new Map<string, { upload: Upload; caller: Caller }>();

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  /** Begins an upload and answers the ticket that its pieces come with. */
  async begin(caller: Caller, limit_bytes: number): Promise<string> {
    const ticket = newId();
    this.#arriving.set(ticket, { caller, upload: new Upload(limit_bytes) });
    return ticket;
  }

  async push(ticket: string, chunk: Uint8Array): Promise<void> {
    this.#find(ticket).upload.push(chunk);
  }

  /** Stores it: all of it, or nothing. */
  async finish(ticket: string): Promise<UploadResult> {
    const { upload, caller } = this.#find(ticket);
    try {
      return await storeUpload(this.#context.database, caller, upload.finish());
    } finally {
      await this.abandon(ticket);
    }
  }

  /** Its client is gone, or it was refused. */
  async abandon(ticket: string): Promise<void> {
    this.#arriving.get(ticket)?.upload.discard();
    this.#arriving.delete(ticket);
  }

  #find(ticket: string): { upload: Upload; caller: Caller } {
    const found = this.#arriving.get(ticket);
    if (!found) throw new Error(`There is no upload with the ticket ${ticket}.`);
    return found;
  }
}
