import { median } from "./load.ts";
import type { Figure, Measurement, Values } from "./measurement.ts";
import type { SubjectName } from "./subjects.ts";

/** What the rounds have brought so far. */
export class Results {
  /** By figure, then by subject: one value a round. */
  readonly #values = new Map<Figure, Map<SubjectName, number[]>>();
  /** What could not be measured, a sentence each. */
  readonly failures: string[] = [];

  /** @param values those that are no numbers are left out */
  add(measurement: Measurement, subject: SubjectName, values: Values): void {
    for (const figure of measurement.figures) {
      const value = values[figure.key];
      if (value !== undefined && Number.isFinite(value)) this.#list(figure, subject).push(value);
    }
  }

  fail(measurement: Measurement, subject: SubjectName, reason: string): void {
    this.failures.push(`${measurement.name}, ${subject}: ${reason}`);
  }

  /** The values of all rounds. */
  all(figure: Figure, subject: SubjectName): readonly number[] {
    return this.#values.get(figure)?.get(subject) ?? [];
  }

  /** The median of all rounds; undefined when there is no value. */
  get(figure: Figure, subject: SubjectName): number | undefined {
    const values = this.all(figure, subject);
    return values.length > 0 ? median(values) : undefined;
  }

  #list(figure: Figure, subject: SubjectName): number[] {
    const bySubject = this.#values.get(figure) ?? new Map<SubjectName, number[]>();
    this.#values.set(figure, bySubject);
    const list = bySubject.get(subject) ?? [];
    bySubject.set(subject, list);
    return list;
  }
}
