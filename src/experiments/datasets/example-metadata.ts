import { unsearchableReason } from "../../platform/contract/fields.ts";
import { readNow, type Tx } from "../../platform/database/database.ts";
import { InvalidRequestError } from "../../platform/errors.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import { type ExampleUpdate, exampleSplits } from "../contract/datasets/examples.ts";
import type { MetadataOperation } from "../contract/datasets/platform-examples.ts";
import { parseJson, toJson } from "../serialization/records.ts";
import { updateDataset } from "../storage/datasets.ts";
import { BASE_SPLIT, incrementVersions, insertExamples, newestVersionsById } from "../storage/examples.ts";
import type { ExampleVersionRow } from "../storage/schema.ts";

const SPLITS = "dataset_split";

type Operation = Pick<MetadataOperation, "key" | "operation" | "value"> & { values: readonly string[] };

/** Moves the splits from the metadata to `split`: clients may send back metadata from a response. A given `split` takes precedence. */
export function extractSplit({ metadata, split }: Pick<ExampleUpdate, "metadata" | "split">) {
  if (!metadata || !(SPLITS in metadata)) return { metadata, split };
  const { [SPLITS]: given, ...others } = metadata;
  const parsed = exampleSplits.safeParse(given);
  return { metadata: others, split: split ?? (parsed.success ? parsed.data : undefined) };
}

/**
 * Applies the operations to the metadata of examples, in order. Unknown and deleted examples are skipped. The caller must have locked the
 * dataset.
 *
 * @returns the ids of the examples that were found
 */
export async function changeMetadata(
  tx: Tx,
  dataset_no: number,
  ids: readonly string[],
  operations: readonly Operation[],
): Promise<Set<string>> {
  const rows = await newestVersionsById(tx, dataset_no, [...new Set(ids)]);
  const last = rows.reduce((latest, { created_at }) => Math.max(latest, Number(created_at)), 0);
  // Must be later than the previous versions, even within the same millisecond, because as_of selects versions by time.
  const created_at = Math.max(await readNow(tx), last + 1);
  const changed = rows.flatMap(({ example_id, ...row }): ExampleVersionRow[] => {
    const after = operations.reduce(applied, contentOf(row));
    const reason = unsearchableReason(after.metadata);
    if (reason)
      throw new InvalidRequestError([
        {
          loc: ["body", "operations"],
          msg: `Value error, the metadata of the example ${example_id} ${reason}`,
          type: "value_error",
        },
      ]);
    const metadata = Object.keys(after.metadata).length > 0 ? toJson(after.metadata) : null;
    const splits = JSON.stringify(after.splits);
    const isUnchanged =
      (row.metadata ?? "{}") === (metadata ?? "{}") && splits === JSON.stringify(contentOf(row).splits);
    return isUnchanged ? [] : [{ ...row, version: row.version + 1, metadata, splits, created_at }];
  });
  await insertExamples(tx, [], changed);
  await incrementVersions(
    tx,
    dataset_no,
    changed.map(({ example_index }) => example_index),
    created_at,
  );
  if (changed.length > 0) await updateDataset(tx, dataset_no, {});
  return new Set(rows.map(({ example_id }) => example_id));
}

interface Content {
  metadata: JsonObject;
  splits: string[];
}

function contentOf({ metadata, splits }: Pick<ExampleVersionRow, "metadata" | "splits">): Content {
  const names = JSON.parse(splits) as string[];
  return { metadata: parseJson(metadata) ?? {}, splits: names.length === 0 ? [BASE_SPLIT] : names };
}

function applied({ metadata, splits }: Content, { key, operation, value, values }: Operation): Content {
  const given = key === SPLITS ? splits : metadata[key];
  const before = Array.isArray(given) ? given : [];
  const change = {
    SET: () => value ?? null,
    ARRAY_ADD: () => [...before, ...new Set(values.filter((item) => !before.includes(item)))],
    ARRAY_REMOVE: () => before.filter((item) => !values.includes(item as string)),
  }[operation]();
  if (key !== SPLITS) return { metadata: { ...metadata, [key]: change }, splits };
  const parsed = exampleSplits.safeParse(change);
  if (parsed.success) return { metadata, splits: parsed.data };
  const msg = "Value error, dataset_split must be a name or a list of names";
  throw new InvalidRequestError([{ loc: ["body", "operations"], msg, type: "value_error", input: value }]);
}
