import { type PayloadSide, previewOf as textOf } from "../../../../src/platform/contract/preview.ts";
import { createStore } from "../../store.ts";
import { DASH } from "../../ui/format.ts";

/** Maximum length of a preview, longer than a table row can show. */
const MAX_CHARS = 300;

/** Returns a one-line preview of inputs or outputs. */
export function previewOf(value: unknown, side: PayloadSide, key?: string): string {
  if (value === null || value === undefined) return DASH;
  return textOf(value, side, key).slice(0, MAX_CHARS).replace(/\s+/g, " ");
}

/** Keys whose values are previewed in the tables of a dataset. A missing key selects the main text. */
export type PreviewKeys = { [side in PayloadSide]?: string };

const STORAGE_KEY = "threadmill.previews";
const AUTOMATIC: PreviewKeys = {};

function storedKeys(): Record<string, PreviewKeys> {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
  } catch {
    return {};
  }
}

const byDataset = createStore(storedKeys());

export const previewKeysOf = (dataset_id: string): PreviewKeys => byDataset.get()[dataset_id] ?? AUTOMATIC;

/** The keys that this browser previews for a dataset. */
export const usePreviewKeys = (dataset_id: string): PreviewKeys => byDataset.use()[dataset_id] ?? AUTOMATIC;

export function setPreviewKeys(dataset_id: string, keys: PreviewKeys): void {
  byDataset.set({ ...byDataset.get(), [dataset_id]: keys });
  localStorage.setItem(STORAGE_KEY, JSON.stringify(byDataset.get()));
}
