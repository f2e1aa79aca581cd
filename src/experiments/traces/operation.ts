import type { FeedbackCreate } from "../contract/feedback/feedback.ts";
import type { RunFields } from "../contract/traces/traces.ts";

/** A new run, or a change of a run, that a client sent. A field of a patch takes precedence over the same field of a post. */
export interface RunOperation {
  kind: "post" | "patch";
  id: string;
  fields: RunFields;
}

export interface Attachment {
  run_id: string;
  name: string;
  mime_type: string;
  data: Uint8Array;
}

/** The changes that one request makes to the traces of a workspace. */
export interface TraceChanges {
  operations: RunOperation[];
  attachments: Attachment[];
  feedback: FeedbackCreate[];
}

/** The ids of the runs that an operation refers to: its own run, the parent and the root. */
export const relatedIds = ({ id, fields }: RunOperation): string[] =>
  [id, fields.parent_run_id, rootIdOf(fields)].filter((related) => related !== undefined);

const rootIdOf = ({ dotted_order, trace_id }: RunOperation["fields"]): string | undefined =>
  dotted_order === undefined
    ? trace_id
    : dotted_order
        .slice(dotted_order.toLowerCase().indexOf("z") + 1)
        .slice(0, 36)
        .toLowerCase();
