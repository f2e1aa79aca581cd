import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";

/** A row while its cells are taken. Scores are by key. */
export interface Draft {
  row: JsonObject;
  scores: Map<string, JsonObject>;
  /** Those that columns of their own cannot hold. */
  more_scores: unknown[];
}

export interface Column {
  name: string;
  /** The field of the row that it belongs to. */
  group: string;
  /** @throws CellError when the cell, which is not empty, does not fit */
  take(draft: Draft, cell: string): void;
}

/** What is wrong with a cell, to be read after the name of its column. */
export class CellError extends Error {}

export const KNOWN_COLUMNS =
  "The columns are: row_id, input or inputs.*, expected or expected_outputs.*, output or actual_outputs.*, score.* (numbers), " +
  "value.* (labels), comment.*, latency (seconds), start_time, end_time, run_name, error, metadata.*; and with JSON in their " +
  "cells: inputs, expected_outputs, actual_outputs, metadata, evaluation_scores.";

export const emptyDraft = (): Draft => ({ row: {}, scores: new Map(), more_scores: [] });

export function rowOf({ row, scores, more_scores }: Draft): JsonObject {
  const evaluation_scores = [...scores.values(), ...more_scores];
  return evaluation_scores.length > 0 ? { ...row, evaluation_scores } : row;
}

/** Fields whose cell is the text itself. */
const TEXTS = ["row_id", "start_time", "end_time", "run_name", "error"];

/** Columns of one text: the field of the row, and the key in it. What is expected and what came out have the same key. */
const SHORT: Record<string, [field: string, key: string]> = {
  input: ["inputs", "input"],
  expected: ["expected_outputs", "output"],
  output: ["actual_outputs", "output"],
};

/** Columns of objects: a column for each key, as in `inputs.question`, or one for the whole object as JSON. */
const OBJECTS: Record<string, string> = {
  inputs: "inputs",
  expected_outputs: "expected_outputs",
  actual_outputs: "actual_outputs",
  metadata: "run_metadata",
};

/** What a column means; undefined when it means nothing. Empty cells are as if they were not there. */
export function columnOf(name: string): Column | undefined {
  const column = (group: string, take: Column["take"]): Column => ({ name, group, take });
  const set = (field: string, read: (cell: string) => unknown) =>
    column(field, ({ row }, cell) => Object.assign(row, { [field]: read(cell) }));
  if (TEXTS.includes(name)) return set(name, (cell) => cell);
  if (name === "latency") return set(name, numberOf);
  if (name === "evaluation_scores") return column(name, (draft, cell) => draft.more_scores.push(...listOf(cell)));
  const short = Object.hasOwn(SHORT, name) ? SHORT[name] : undefined;
  if (short) return column(short[0], ({ row }, cell) => addTo(row, short[0], { [short[1]]: cell }));
  const [, prefix = name, key] = /^([a-z_]+)\.(.+)$/s.exec(name) ?? [];
  const field = Object.hasOwn(OBJECTS, prefix) ? OBJECTS[prefix] : undefined;
  if (field !== undefined)
    return column(field, ({ row }, cell) =>
      addTo(row, field, key === undefined ? objectOf(cell) : { [key]: contentOf(cell) }),
    );
  if (key === undefined) return undefined;
  if (prefix === "score") return column(prefix, (draft, cell) => addScore(draft, key, { score: numberOf(cell) }));
  if (prefix === "value" || prefix === "comment")
    return column(prefix, (draft, cell) => addScore(draft, key, { [prefix]: cell }));
  return undefined;
}

function addTo(row: JsonObject, field: string, members: JsonObject): void {
  row[field] = { ...(row[field] as JsonObject | undefined), ...members };
}

function addScore({ scores }: Draft, key: string, part: JsonObject): void {
  scores.set(key, { key, ...scores.get(key), ...part });
}

/** A cell that is a JSON list or object is that; all else is text, numbers too: an id such as 007 must stay what it is. */
function contentOf(cell: string): unknown {
  if (!/^\s*[[{]/.test(cell)) return cell;
  const value = parsed(cell);
  return value === undefined ? cell : value;
}

function objectOf(cell: string): JsonObject {
  const value = parsed(cell);
  if (isObject(value)) return value;
  throw new CellError(`must hold a JSON object: ${shortened(cell)} is none.`);
}

function listOf(cell: string): unknown[] {
  const value = parsed(cell);
  if (Array.isArray(value)) return value;
  throw new CellError(`must hold a JSON list: ${shortened(cell)} is none.`);
}

function numberOf(cell: string): number {
  const text = cell.trim().toLowerCase();
  if (text === "true" || text === "false") return Number(text === "true");
  const number = text === "" ? Number.NaN : Number(text);
  if (Number.isFinite(number)) return number;
  throw new CellError(`must hold a number: ${shortened(cell)} is none. Labels go into a column "value.…".`);
}

function parsed(cell: string): unknown {
  try {
    return JSON.parse(cell);
  } catch {
    return undefined;
  }
}

const shortened = (cell: string): string => JSON.stringify(cell.length > 40 ? `${cell.slice(0, 40)}…` : cell);
