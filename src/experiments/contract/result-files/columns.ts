/** Columns of result files, for the command line and for the web app. This file imports nothing, so that the web app can use its values. */

type JsonObject = Record<string, unknown>;

/** The cells of a row so far. */
interface Draft {
  row: JsonObject;
  /** Scores by feedback key. */
  scores: Map<string, JsonObject>;
  /** The scores of the column `evaluation_scores`. */
  more_scores: unknown[];
}

export interface Column {
  name: string;
  /** The field of the row that the column sets. */
  field: string;
  /** Adds a cell that is not empty to the row: a text, or a value of a JSON file. */
  add(draft: Draft, cell: unknown): void;
}

/** Thrown for an invalid cell. */
export class CellError extends Error {
  readonly column: string;
  readonly value: unknown;

  /** @param problem completes the sentence `column "score.correct" …` */
  constructor(column: string, value: unknown, problem: string) {
    super(`column "${column}" ${problem}`);
    this.column = column;
    this.value = value;
  }
}

/** Thrown by readers of values, which do not know their column. */
class ValueError extends Error {}

/**
 * Returns the row that consists of the cells. Empty cells are missing.
 *
 * @throws CellError for an invalid cell
 */
export function rowOfCells(columns: readonly (Column | undefined)[], cells: readonly unknown[]): JsonObject {
  const draft: Draft = { row: {}, scores: new Map(), more_scores: [] };
  columns.forEach((column, index) => {
    const cell = cells[index];
    if (!column || cell === "" || cell === undefined || cell === null) return;
    try {
      column.add(draft, cell);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      throw new CellError(column.name, cell, error.message);
    }
  });
  const evaluation_scores = [...draft.scores.values(), ...draft.more_scores];
  return evaluation_scores.length > 0 ? { ...draft.row, evaluation_scores } : draft.row;
}

export const KNOWN_COLUMNS =
  "Valid columns: row_id, input or inputs.*, expected or expected_outputs.*, output or actual_outputs.*, score.* (numbers), " +
  "value.* (labels), comment.*, latency (seconds), start_time, end_time, run_name, error, metadata.*. These " +
  "columns are also valid, but each cell must contain JSON: inputs, expected_outputs, actual_outputs, metadata, evaluation_scores.";

/** Fields whose value is the text of the cell. */
const TEXT_FIELDS = ["row_id", "start_time", "end_time", "run_name", "error"];

/** Columns that set one key of an object: the field of the row, and the key. Expected and actual outputs use the same key. */
const TEXT_COLUMNS: Record<string, [field: string, key: string]> = {
  input: ["inputs", "input"],
  expected: ["expected_outputs", "output"],
  output: ["actual_outputs", "output"],
};

/** Row fields that contain objects. Each has one column per key (`inputs.question`), or one column with the object as JSON. */
const OBJECT_COLUMNS: Record<string, string> = {
  inputs: "inputs",
  expected_outputs: "expected_outputs",
  actual_outputs: "actual_outputs",
  metadata: "run_metadata",
};

/** Returns the column that a name stands for. Undefined for an unknown name. */
export function columnOf(name: string): Column | undefined {
  const column = (field: string, add: Column["add"]): Column => ({ name, field, add });
  const set = (field: string, read: (cell: unknown) => unknown) =>
    column(field, ({ row }, cell) => Object.assign(row, { [field]: read(cell) }));
  if (TEXT_FIELDS.includes(name)) return set(name, (cell) => cell);
  if (name === "latency") return set(name, numberOf);
  if (name === "evaluation_scores") return column(name, (draft, cell) => draft.more_scores.push(...listOf(cell)));
  const text = Object.hasOwn(TEXT_COLUMNS, name) ? TEXT_COLUMNS[name] : undefined;
  if (text) return column(text[0], ({ row }, cell) => addFields(row, text[0], { [text[1]]: cell }));
  const [, prefix = name, key] = /^([a-z_]+)\.(.+)$/s.exec(name) ?? [];
  const field = Object.hasOwn(OBJECT_COLUMNS, prefix) ? OBJECT_COLUMNS[prefix] : undefined;
  if (field !== undefined)
    return column(field, ({ row }, cell) =>
      addFields(row, field, key === undefined ? objectOf(cell) : { [key]: contentOf(cell) }),
    );
  if (key === undefined) return undefined;
  if (prefix === "score")
    return column(prefix, (draft, cell) => addScore(draft, key, { score: numberOf(cell, USE_VALUE) }));
  if (prefix === "value" || prefix === "comment")
    return column(prefix, (draft, cell) => addScore(draft, key, { [prefix]: cell }));
  return undefined;
}

function addFields(row: JsonObject, field: string, members: JsonObject): void {
  row[field] = { ...(row[field] as JsonObject | undefined), ...members };
}

function addScore({ scores }: Draft, key: string, part: JsonObject): void {
  scores.set(key, { key, ...scores.get(key), ...part });
}

/** Parses a text that is a JSON list or object. Everything else stays text, including numbers: an ID such as 007 must not change. */
function contentOf(cell: unknown): unknown {
  if (typeof cell !== "string" || !/^\s*[[{]/.test(cell)) return cell;
  return parsedCell(cell) ?? cell;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the value of a cell that contains JSON. Undefined if the text is not JSON. */
function parsedCell(cell: unknown): unknown {
  if (typeof cell !== "string") return cell;
  try {
    return JSON.parse(cell);
  } catch {
    return undefined;
  }
}

function objectOf(cell: unknown): JsonObject {
  const value = parsedCell(cell);
  if (isObject(value)) return value;
  throw new ValueError(`must be a JSON object, not ${shortened(cell)}.`);
}

function listOf(cell: unknown): unknown[] {
  const value = parsedCell(cell);
  if (Array.isArray(value)) return value;
  throw new ValueError(`must be a JSON list, not ${shortened(cell)}.`);
}

const USE_VALUE = ' For labels, use a column whose name starts with "value.".';

function numberOf(cell: unknown, advice = ""): number {
  const text = String(cell).trim().toLowerCase();
  if (text === "true" || text === "false") return Number(text === "true");
  const number = text === "" ? Number.NaN : Number(text);
  if (Number.isFinite(number)) return number;
  throw new ValueError(`must be a number, not ${shortened(cell)}.${advice}`);
}

/** Formats a value for an error message. */
export function shortened(cell: unknown): string {
  const text = typeof cell === "string" ? cell : JSON.stringify(cell);
  const short = text.length > 40 ? `${text.slice(0, 40)}…` : text;
  return typeof cell === "string" ? JSON.stringify(short) : short;
}
