import { median } from "./load.ts";
import type { Figure, Measurement, Values } from "./measurement.ts";
import type { SubjectName } from "./subjects.ts";

/** The values of all rounds. */
export class Results {
  /** By figure, then by subject: one value per round. */
  readonly #values = new Map<Figure, Map<SubjectName, number[]>>();
  /** Failed measurements, one sentence each. */
  readonly failures: string[] = [];

  /** Ignores values that are not finite. */
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

  /** The median of all rounds; undefined without values. */
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
