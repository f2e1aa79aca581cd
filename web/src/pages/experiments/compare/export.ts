import type { ComparedCell, ComparedRow } from "../../../../../src/experiments/contract/app-comparison.ts";
import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { count, number, percent } from "../../../ui/format.ts";
import { deltaText, intervalText, pText } from "./difference-text.ts";
import { type Narrowing, readRows } from "./queries.ts";
import { isSignificant, type Key, type View } from "./view.ts";

/** Maximum page size of the API. */
const PAGE = 200;

interface CurrentView {
  sessions: readonly Session[];
  keys: readonly Key[];
  rows: readonly ComparedRow[];
}

/** Fetches all rows that match the filters, in table order. */
export async function fetchAllRows(dataset_id: string, narrowing: Narrowing): Promise<ComparedRow[]> {
  const rows: ComparedRow[] = [];
  for (;;) {
    const page = await readRows(dataset_id, { ...narrowing, offset: rows.length, limit: PAGE });
    rows.push(...page.rows);
    if (page.rows.length === 0 || rows.length >= page.total) return rows;
  }
}

/** Formats one CSV line per example, with each experiment's scores, latency in seconds, error and output preview. */
export function csvOf({ sessions, keys, rows }: CurrentView): string {
  const fields = [...keys.map(({ name }) => name), "latency_s", "error", "output"];
  const head = ["number", "example_id", "input", "expected"];
  const columns = sessions.flatMap(({ name }) => fields.map((field) => `${name}: ${field}`));
  const lines = rows.map(({ number, example_id, inputs_preview, expected_preview, cells }) => [
    number,
    example_id,
    inputs_preview,
    expected_preview,
    ...sessions.flatMap((_, index) => valuesOf(cells[index] ?? undefined, keys)),
  ]);
  return [[...head, ...columns], ...lines].map((line) => `${line.map(cellOf).join(",")}\r\n`).join("");
}

const valuesOf = (cell: ComparedCell | undefined, keys: readonly Key[]) => [
  ...keys.map(({ name }) => cell?.scores[name] ?? cell?.labels[name]),
  cell?.latency_s,
  cell?.error,
  cell?.outputs_preview,
];

/** Spreadsheets evaluate cells that start with one of these characters as formulas. */
const FORMULA = /^[=+@\t\r-]/;

function cellOf(value: string | number | null | undefined): string {
  if (typeof value === "number") return String(value);
  const text = value ?? "";
  const escaped = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(escaped) ? `"${escaped.replaceAll('"', '""')}"` : escaped;
}

/**
 * Summarizes the comparison as Markdown: for each experiment and key the mean, and the difference from the baseline with its confidence
 * interval and p-value.
 *
 * @param url leads to the comparison
 */
export function markdownOf({ shown, keys, differenceOf }: View, url: string): string {
  const scored = keys.filter(({ distribution }) => distribution);
  const head = [
    "Experiment",
    ...scored.map(({ name, isLowerBetter }) => (isLowerBetter ? `${name} (lower is better)` : name)),
  ];
  const lines = shown.map(({ id, name, feedback_stats, error_rate }, index) => [
    index === 0 ? `${name} (baseline)` : name,
    ...scored.map((key) => {
      const mean = number(feedback_stats?.[key.name]?.avg);
      const difference = index === 0 ? undefined : differenceOf(id, key.name);
      return difference ? `${mean}${differenceText(difference)}` : mean;
    }),
    percent(error_rate),
  ]);
  const table = [[...head, "Errors"], ["---", ...scored.map(() => "---:"), "---:"], ...lines];
  const rows = table.map(
    (row) => `| ${row.map((cell) => cell.replaceAll("|", "\\|").replaceAll(/\s+/g, " ")).join(" | ")} |`,
  );
  const note =
    "In parentheses: the difference from the baseline, and the 95 % confidence interval of the difference. **Bold**: the difference is significant (p < 0.05 after Holm's correction for multiple comparisons, and the interval excludes 0).";
  return [...rows, "", note, "", url, ""].join("\n");
}

function differenceText(difference: PairComparison): string {
  const { mean_delta, p_adjusted, wins, losses } = difference;
  if (mean_delta === null) return "";
  const text = deltaText(difference, true, false);
  const p = p_adjusted === null ? "" : `, ${pText(p_adjusted)}`;
  return ` (${isSignificant(difference) ? `**${text}**` : text} ${intervalText(difference, false)}${p}; ${count(wins)} better, ${count(losses)} worse)`;
}

/** Formats the rows as JSON, with the experiments' names. */
export const jsonOf = ({ sessions, keys, rows }: CurrentView): string =>
  JSON.stringify(
    rows.map(({ cells, ...example }) => ({
      ...example,
      experiments: sessions.map(({ id, name }, index) => {
        const cell = cells[index];
        const scores = keys.flatMap(({ name: key }) => {
          const value = cell?.scores[key] ?? cell?.labels[key];
          return value === undefined ? [] : [[key, value] as const];
        });
        return cell ? { id, name, ...cell, labels: undefined, scores: Object.fromEntries(scores) } : { id, name };
      }),
    })),
    null,
    2,
  );
