import type { Measurement, Sizes, Values } from "./measurement.ts";
import { killAll } from "./processes.ts";
import type { Results } from "./results.ts";
import type { Subject } from "./subjects.ts";

/** Time limit of one measurement of one subject, in addition to its own minutes. */
const TIMEOUT_MS = 20 * 60_000;
/** A longer measurement is not repeated in later rounds. */
const REPEAT_LIMIT_MS = 4 * 60_000;

/** Repeats a measurement of all subjects. Each repetition starts with another subject. */
export async function takeAllRounds(
  measurement: Measurement,
  all: readonly Subject[],
  options: { rounds: number; sizes: Sizes; results: Results },
): Promise<void> {
  const subjects = all.filter(
    ({ name }) =>
      !(measurement.without as readonly string[] | undefined)?.includes(name) &&
      (name === "threadmill-postgres"
        ? measurement.on_postgres || measurement.only_postgres
        : !measurement.only_postgres),
  );
  let left = subjects;
  const times = options.rounds * (measurement.times_per_round ?? 1);
  for (let time = 0; time < times; time++) {
    const first = time % subjects.length;
    for (const subject of [...subjects.slice(first), ...subjects.slice(0, first)]) {
      if (!left.includes(subject)) continue;
      const title = `${measurement.name} ${time + 1}/${times}, ${subject.name}:`;
      const again = await takeOnce(measurement, subject, options.sizes, options.results, title);
      if (!again) left = left.filter((other) => other !== subject);
    }
  }
}

/** @returns whether to repeat the measurement */
async function takeOnce(
  measurement: Measurement,
  subject: Subject,
  sizes: Sizes,
  results: Results,
  title: string,
): Promise<boolean> {
  const started_at = performance.now();
  try {
    const limit_ms = TIMEOUT_MS + (measurement.minutes?.(sizes) ?? 0) * 60_000;
    const values = await withTimeout(limit_ms, () => subject.measure(measurement, sizes));
    results.add(measurement, subject.name, values);
    const again = performance.now() - started_at < REPEAT_LIMIT_MS;
    console.log(title, oneLine(values), again ? "" : "(too slow to repeat)");
    return again;
  } catch (error) {
    const { message } = error as Error;
    results.fail(measurement, subject.name, message);
    console.log(title, "failed:", message);
    return false;
  }
}

/** Kills the processes of the subject after the time limit, so that the measurement fails. */
async function withTimeout<T>(limit_ms: number, measure: () => Promise<T>): Promise<T> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killAll();
  }, limit_ms);
  try {
    return await measure();
  } catch (error) {
    throw isLate ? new Error(`timed out after ${limit_ms / 60_000} minutes.`) : error;
  } finally {
    clearTimeout(timer);
  }
}

function oneLine(values: Values): string {
  const parts = Object.entries(values).map(([key, value]) => `${key} ${Number(value.toPrecision(4))}`);
  return parts.join(", ");
}
