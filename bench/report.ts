import type { Figure, Goal, Measurement } from "./measurement.ts";
import type { Results } from "./results.ts";
import type { Subject, SubjectName } from "./subjects.ts";

export interface Report {
  /** Facts about the machine and the run, one per line. */
  facts: readonly string[];
  subjects: readonly Subject[];
  measurements: readonly Measurement[];
  results: Results;
}

/** The subjects that have goals, and the subjects they are compared with. */
const OWN: readonly SubjectName[] = ["threadmill-normal", "threadmill-full"];
const OTHERS: readonly ("floor" | "peer")[] = ["floor", "peer"];

/** The report as Markdown: figures and ratios, then the values of each round. */
export function toMarkdown(report: Report): string {
  const { facts, subjects, results } = report;
  const failures =
    results.failures.length > 0 ? ["", "Not measured:", "", ...results.failures.map((line) => `- ${line}`)] : [];
  return [
    "# Benchmark",
    "",
    ...facts.map((fact) => `- ${fact}`),
    ...subjects.map(({ name, about }) => `- **${name}**: ${about}`),
    "",
    "## Medians and ratios",
    "",
    "In brackets: ratio to the latency of GET /ok of the same process, measured while the process is idle.",
    "",
    ...ratioTable(report),
    ...failures,
    "",
    "## Every round",
    "",
    ...roundTable(report),
    "",
  ].join("\n");
}

/** The report as JSON: all values, medians, and the goals that are met. */
export function toJson({ facts, subjects, measurements, results }: Report): string {
  const figures = measurements.flatMap(({ name, figures }) =>
    figures.map((figure) => ({
      measurement: name,
      key: figure.key,
      label: figure.label,
      goal: figure.goal,
      subjects: Object.fromEntries(
        subjects.map((subject) => [
          subject.name,
          {
            median: results.get(figure, subject.name),
            rounds: results.all(figure, subject.name),
            times_base: baseRatio(figure, subject.name, results),
            met: OWN.includes(subject.name) ? isMet(figure, subject.name, results) : undefined,
          },
        ]),
      ),
    })),
  );
  return `${JSON.stringify({ facts, figures, failures: results.failures }, null, 2)}\n`;
}

function ratioTable({ subjects, measurements, results }: Report): string[] {
  const names = subjects.map(({ name }) => name);
  const pairs = OTHERS.flatMap((other) => OWN.map((own) => [own, other] as const)).filter((pair) =>
    pair.every((name) => names.includes(name)),
  );
  const rows = measurements.flatMap(({ figures }) =>
    figures.map((figure) => [
      figure.label,
      ...names.map((name) => number(results.get(figure, name)) + baseText(figure, name, results)),
      ...pairs.map(([own, other]) => times(ratio(figure, own, other, results))),
      figure.goal ? goalText(figure.goal) : "",
      figure.goal ? verdict(figure, results) : "",
    ]),
  );
  const ratios = pairs.map(([own, other]) => `${own.replace("threadmill-", "")} / ${other}`);
  return table(["figure", ...names, ...ratios, "target", "met?"], rows);
}

function roundTable({ subjects, measurements, results }: Report): string[] {
  const rows = measurements.flatMap(({ figures }) =>
    figures.map((figure) => [
      figure.label,
      ...subjects.map(({ name }) => results.all(figure, name).map(number).join(" · ")),
    ]),
  );
  return table(["figure", ...subjects.map(({ name }) => name)], rows);
}

function ratio(figure: Figure, own: SubjectName, other: SubjectName, results: Results): number | undefined {
  const [value, base] = [results.get(figure, own), results.get(figure, other)];
  return value === undefined || !base ? undefined : value / base;
}

/** Whether a subject meets the goal of a figure; undefined without a goal or a value. */
function isMet(figure: Figure, own: SubjectName, results: Results): boolean | undefined {
  const { goal } = figure;
  if (!goal) return undefined;
  const value = goal.against === "itself" ? results.get(figure, own) : ratio(figure, own, goal.against, results);
  if (value === undefined) return undefined;
  return "max" in goal ? value <= goal.max : value >= goal.min;
}

/** One word if all subjects of Threadmill agree, otherwise one per subject. */
function verdict(figure: Figure, results: Results): string {
  const words = OWN.flatMap((own) => {
    const met = isMet(figure, own, results);
    return met === undefined ? [] : [{ own, word: met ? "met" : "**missed**" }];
  });
  if (words.length === 0) return "unknown";
  if (new Set(words.map(({ word }) => word)).size === 1) return words[0]?.word ?? "";
  return words.map(({ own, word }) => `${own.replace("threadmill-", "")} ${word}`).join(", ");
}

function goalText(goal: Goal): string {
  const limit = "max" in goal ? `≤ ${goal.max}` : `≥ ${goal.min}`;
  return goal.against === "itself" ? limit : `${limit} × ${goal.against}`;
}

/** The ratio to the base figure in brackets; empty without one. */
function baseText(figure: Figure, name: SubjectName, results: Results): string {
  const ratio = baseRatio(figure, name, results);
  return ratio === undefined ? "" : ` (${times(ratio)})`;
}

function baseRatio(figure: Figure, name: SubjectName, results: Results): number | undefined {
  const [value, base] = [results.get(figure, name), figure.base && results.get(figure.base, name)];
  return value === undefined || !base ? undefined : value / base;
}

/** Three significant digits, without an exponent. */
function number(value: number | undefined): string {
  if (value === undefined) return "–";
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

const times = (value: number | undefined) => (value === undefined ? "–" : `${number(value)}×`);

function table(head: string[], rows: string[][]): string[] {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, column) => (column === 0 ? "---" : "---:"))), ...rows.map(line)];
}
