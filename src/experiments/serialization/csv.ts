import { stringify } from "csv-stringify/sync";

/** Spreadsheets execute a cell that begins with one of these characters as a formula. */
const FORMULA = /^[=+@\t\r-]/;

/** Negative numbers are not escaped; `-1+cmd|' /C calc'!A0` is not a number. */
const NEGATIVE_NUMBER = /^-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

const escapeFormula = (cell: string): string => (FORMULA.test(cell) && !NEGATIVE_NUMBER.test(cell) ? `'${cell}` : cell);

/** Returns a text unchanged, a missing value as an empty cell, and anything else as JSON. */
export const cellText = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** Lines of CSV, in which formulas are escaped. */
export const csvLines = (rows: string[][]): string => stringify(rows.map((cells) => cells.map(escapeFormula)));
