import type { Tx } from "../../platform/database/database.ts";
import { removedPlacesOf } from "../storage/examples.ts";
import type { DatasetRow } from "../storage/schema.ts";

/**
 * The places of the examples that were removed from a dataset, in ascending order: they count nowhere in a comparison. Places
 * are never given out again, so where there are as many examples as places nothing was removed, and nothing is asked (of
 * 10,000 examples it takes a millisecond).
 */
export const removedPlaces = (tx: Tx, { dataset_no, next_ord, example_count }: DatasetRow): Promise<number[]> =>
  next_ord === example_count ? Promise.resolve([]) : removedPlacesOf(tx, dataset_no);
