import type { Tx } from "../../platform/database/database.ts";
import { InvalidRequestError } from "../../platform/errors.ts";
import { newAttachmentSecret } from "../attachment-links.ts";
import type { ExampleUpdate } from "../contract/datasets/examples.ts";
import {
  attachmentsOfExamples,
  endAttachments,
  insertExampleAttachments,
  renameAttachment,
} from "../storage/example-attachments.ts";
import type { ExampleAttachmentRow, ExampleRow } from "../storage/schema.ts";

export type NewAttachment = Pick<ExampleAttachmentRow, "name" | "mime_type" | "data">;

const MAX_ATTACHMENTS = 100;

/** Keeps, renames, removes and adds attachments of the newest version of an example. */
export async function changeAttachments(
  tx: Tx,
  example: ExampleRow,
  version: number,
  added: readonly NewAttachment[],
  operations: ExampleUpdate["attachments_operations"],
): Promise<void> {
  const { dataset_no, example_index, example_id } = example;
  const stored = await currentAttachments(tx, dataset_no, example_index);
  const current = new Map(stored.map((info) => [info.name, info]));
  const { retain = [...current.keys()], rename = {} } = operations ?? {};
  const loc = ["body", example_id, "attachments_operations"];
  const unknown = [...retain, ...Object.keys(rename)].find((name) => !current.has(name));
  if (unknown !== undefined) throw invalidValue(loc, `the example has no attachment "${unknown}"`);
  const names = [...added.map(({ name }) => name), ...Object.values(rename)];
  const taken = names.find((name, at) => names.indexOf(name) < at || (at >= added.length && retain.includes(name)));
  if (taken !== undefined) throw invalidValue(loc, `more than one attachment would be named "${taken}"`);
  const ended = [...current.values()].filter(({ name }) => !retain.includes(name) || names.includes(name));
  await endAttachments(
    tx,
    ended.map(({ token }) => token),
    version,
  );
  for (const [from, name] of Object.entries(rename)) {
    const source = current.get(from);
    if (source) await renameAttachment(tx, source, { name, from_version: version, token: newAttachmentSecret() });
  }
  await addAttachments(tx, example, version, added, current.size - ended.length + Object.keys(rename).length);
}

/** @param others the number of attachments that this version has besides these */
export async function addAttachments(
  tx: Tx,
  { dataset_no, example_index, example_id }: ExampleRow,
  from_version: number,
  attachments: readonly NewAttachment[] = [],
  others = 0,
): Promise<void> {
  if (attachments.length + others > MAX_ATTACHMENTS)
    throw invalidValue(["body", example_id], `an example can have at most ${MAX_ATTACHMENTS} attachments`);
  const rows = attachments.map(({ name, mime_type, data }): ExampleAttachmentRow => {
    const key = { dataset_no, example_index, name, from_version };
    return { ...key, until_version: null, mime_type, token: newAttachmentSecret(), data };
  });
  await insertExampleAttachments(tx, rows);
}

/** Removes all attachments of an example from this version on. Older versions keep them. */
export async function endAttachmentsOf(tx: Tx, { dataset_no, example_index }: ExampleRow, version: number) {
  const current = await currentAttachments(tx, dataset_no, example_index);
  await endAttachments(
    tx,
    current.map(({ token }) => token),
    version,
  );
}

async function currentAttachments(tx: Tx, dataset_no: number, example_index: number) {
  const all = await attachmentsOfExamples(tx, dataset_no, [example_index]);
  return all.filter(({ until_version }) => until_version === null);
}

export const invalidValue = (loc: (string | number)[], reason: string): InvalidRequestError =>
  new InvalidRequestError([{ loc, msg: `Value error, ${reason}`, type: "value_error" }]);
