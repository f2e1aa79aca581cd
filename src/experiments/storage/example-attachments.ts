import { sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";
import { byIds, insertMany } from "../../platform/database/insert-many.ts";
import type { ExampleAttachmentRow } from "./schema.ts";
import { tokenBeginsWith } from "./traces/traces.ts";

export type ExampleAttachmentInfo = Omit<ExampleAttachmentRow, "data">;

const INFO = ["dataset_no", "example_index", "name", "from_version", "until_version", "mime_type", "token"] as const;

/** Returns the attachments of all versions of the examples, sorted by name. */
export const attachmentsOfExamples = (
  tx: Tx,
  dataset_no: number,
  example_indexes: number[],
): Promise<ExampleAttachmentInfo[]> =>
  byIds(example_indexes, (batch) =>
    tx.all(
      tx.k
        .selectFrom("example_attachments")
        .select(INFO)
        .where("dataset_no", "=", dataset_no)
        .where("example_index", "in", batch)
        .orderBy("name"),
    ),
  );

/** Whether the version of an example has the attachment. */
export const isOfVersion = ({ from_version, until_version }: ExampleAttachmentInfo, version: number): boolean =>
  from_version <= version && (until_version === null || until_version > version);

export const insertExampleAttachments = (tx: Tx, rows: ExampleAttachmentRow[]): Promise<void> =>
  insertMany(tx, "example_attachments", rows);

/** Adds an attachment to a version under a new name, with the bytes of another attachment of the example. */
export async function renameAttachment(
  tx: Tx,
  source: ExampleAttachmentInfo,
  target: Pick<ExampleAttachmentRow, "name" | "from_version" | "token">,
): Promise<void> {
  const { name, from_version, token } = target;
  await tx.run(
    sql`insert into example_attachments
      (dataset_no, example_index, name, from_version, until_version, mime_type, token, data)
      select dataset_no, example_index, ${name}, ${from_version}, null, mime_type, ${token}, data
      from example_attachments where token = ${source.token}`.compile(tx.k),
  );
}

/** Removes attachments from a version and from all later versions. Older versions keep them. */
export async function endAttachments(tx: Tx, tokens: string[], until_version: number): Promise<void> {
  if (tokens.length > 0)
    await tx.run(tx.k.updateTable("example_attachments").set({ until_version }).where("token", "in", tokens));
}

/** The attachments whose token begins with the text: usually one. */
export const exampleAttachmentsBySecret = (
  tx: Tx,
  beginning: string,
): Promise<Pick<ExampleAttachmentRow, "name" | "mime_type" | "token">[]> =>
  tx.all(
    tx.k.selectFrom("example_attachments").select(["name", "mime_type", "token"]).where(tokenBeginsWith(beginning)),
  );

export async function readExampleAttachment(tx: Tx, token: string): Promise<Uint8Array | undefined> {
  return (await tx.first(tx.k.selectFrom("example_attachments").select("data").where("token", "=", token)))?.data;
}
