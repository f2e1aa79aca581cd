import type { Tx } from "../../platform/database/database.ts";
import type { ScoreVectorRow } from "./schema.ts";

export type VectorName = Pick<ScoreVectorRow, "kind" | "key">;

/** Stores a vector, in the place of the one that has its name. */
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

export interface Vector extends VectorName {
  experiment_no: number;
  /** By the place of the example; shorter than the dataset when the last examples came later. */
  values: Float64Array;
}

/** The vectors of some experiments: all, or those of some keys; there is nothing at the `removed` places. */
export async function vectorsOf(
  tx: Tx,
  experiments: number[],
  of: { kind: ScoreVectorRow["kind"]; keys?: string[] | undefined },
  removed: readonly number[],
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
    for (const ord of removed) values[ord] = Number.NaN; // Beyond its end there is no place, and nothing is changed.
    return { ...name, values };
  });
}

/** A copy: the bytes of a database need not begin where a float may, and pg's lie in a buffer that they share. */
const floats = (data: Uint8Array): Float64Array => new Float64Array(new Uint8Array(data).buffer);
