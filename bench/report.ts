import type { Figure, Goal, Measurement } from "./measurement.ts";
import type { Results } from "./results.ts";
import type { Subject, SubjectName } from "./subjects.ts";

/** What a report is about. */
export interface Report {
  /** Facts about the machine and the run, a line each. */
  facts: readonly string[];
  subjects: readonly Subject[];
  measurements: readonly Measurement[];
  results: Results;
}

/** The subjects that goals are for, and those that they are compared with. */
const OWN: readonly SubjectName[] = ["threadmill-normal", "threadmill-full"];
const OTHERS: readonly ("floor" | "peer")[] = ["floor", "peer"];

/** The report for people: figures and ratios, then the values of each round. */
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
    "In brackets: how many times GET /ok takes, of the same process while nothing else goes on.",
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

/** The same for programs: all values and medians, and which goals were met. */
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
            times_beside: besideRatio(figure, subject.name, results),
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
      ...names.map((name) => number(results.get(figure, name)) + besideText(figure, name, results)),
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

/** Whether a subject reaches a figure's goal; undefined when there is none or it cannot be told. */
function isMet(figure: Figure, own: SubjectName, results: Results): boolean | undefined {
  const { goal } = figure;
  if (!goal) return undefined;
  const value = goal.against === "itself" ? results.get(figure, own) : ratio(figure, own, goal.against, results);
  if (value === undefined) return undefined;
  return "at_most" in goal ? value <= goal.at_most : value >= goal.at_least;
}

/** One word when all of ours agree, else a word for each. */
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
  const limit = "at_most" in goal ? `≤ ${goal.at_most}` : `≥ ${goal.at_least}`;
  return goal.against === "itself" ? limit : `${limit} × ${goal.against}`;
}

/** How many times the figure beside it, in brackets; empty when there is none. */
function besideText(figure: Figure, name: SubjectName, results: Results): string {
  const ratio = besideRatio(figure, name, results);
  return ratio === undefined ? "" : ` (${times(ratio)})`;
}

function besideRatio(figure: Figure, name: SubjectName, results: Results): number | undefined {
  const [value, base] = [results.get(figure, name), figure.beside && results.get(figure.beside, name)];
  return value === undefined || !base ? undefined : value / base;
}

/** Three digits that count, without a power of ten. */
function number(value: number | undefined): string {
  if (value === undefined) return "–";
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

const times = (value: number | undefined) => (value === undefined ? "–" : `${number(value)}×`);

function table(head: string[], rows: string[][]): string[] {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, column) => (column === 0 ? "---" : "---:"))), ...rows.map(line)];
}
