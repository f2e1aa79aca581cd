import type { Database } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { type AttachmentInfo, findAttachment, readAttachment } from "../storage/traces.ts";

/** Attachments of runs. The token in their address grants access: the official clients fetch them without a key. */
export class Attachments {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** @throws ApiError when the token is unknown, for example because the run was deleted */
  async find(token: string): Promise<AttachmentInfo> {
    const found = await findAttachment(this.#database.read, token);
    if (!found) throw new ApiError("not_found");
    return found;
  }

  async read({ run_no, name }: AttachmentInfo): Promise<Uint8Array> {
    return readAttachment(this.#database.read, run_no, name);
  }
}
