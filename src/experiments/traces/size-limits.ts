import type { InvalidPart } from "../../platform/errors.ts";
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
