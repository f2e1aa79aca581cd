import type { Tx } from "../../platform/database/database.ts";
import type { ScoreVectorRow } from "./schema.ts";

export type VectorName = Pick<ScoreVectorRow, "kind" | "key">;

export const EMPTY_VECTOR = new Float64Array();

/** Inserts or replaces a vector. */
export const putVector = (tx: Tx, experiment_no: number, name: VectorName, values: Float64Array): Promise<number> => {
  const data = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return tx.run(
    tx.k
      .insertInto("score_vectors")
      .values({ experiment_no, ...name, data })
      .onConflict((conflict) => conflict.columns(["experiment_no", "kind", "key"]).doUpdateSet({ data })),
  );
};

export const deleteVector = (tx: Tx, experiment_no: number, { kind, key }: VectorName): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("score_vectors")
      .where("experiment_no", "=", experiment_no)
      .where("kind", "=", kind)
      .where("key", "=", key),
  );

export const deleteScoreVectors = (tx: Tx, experiment_no: number): Promise<number> =>
  tx.run(tx.k.deleteFrom("score_vectors").where("experiment_no", "=", experiment_no).where("kind", "=", "score"));

interface Vector extends VectorName {
  experiment_no: number;
  /** By example index; shorter than the dataset when examples were added later. */
  values: Float64Array;
}

/** Returns the vectors of experiments for the given keys, or for all keys. The values at the `deleted` indexes are NaN. */
export async function listVectors(
  tx: Tx,
  experiments: number[],
  of: { kind: ScoreVectorRow["kind"]; keys?: string[] | undefined },
  deleted: readonly number[],
): Promise<Vector[]> {
  let query = tx.k
    .selectFrom("score_vectors")
    .selectAll()
    .where("experiment_no", "in", experiments)
    .where("kind", "=", of.kind);
  if (of.keys) query = query.where("key", "in", of.keys);
  const rows = await tx.all(query);
  return rows.map(({ data, ...name }) => {
    const values = floats(data);
    // Writes beyond the end of a typed array have no effect.
    for (const index of deleted) values[index] = Number.NaN;
    return { ...name, values };
  });
}

/** Copies the bytes only if they are unaligned: small values are views of a shared buffer. */
const floats = ({ buffer, byteOffset, byteLength }: Uint8Array): Float64Array =>
  byteOffset % Float64Array.BYTES_PER_ELEMENT === 0
    ? new Float64Array(buffer, byteOffset, byteLength / Float64Array.BYTES_PER_ELEMENT)
    : new Float64Array(buffer.slice(byteOffset, byteOffset + byteLength));
