import type { Measurement, Sizes, Values } from "./measurement.ts";
import { killAll } from "./processes.ts";
import type { Results } from "./results.ts";
import type { Subject } from "./subjects.ts";

/** One measurement of one subject may take this long. */
const LIMIT_MS = 20 * 60_000;
/** One that took longer than this is not taken again in later rounds. */
const REPEAT_LIMIT_MS = 4 * 60_000;

/** Takes one measurement of all subjects again and again; each time another subject begins. */
export async function takeAllRounds(
  measurement: Measurement,
  all: readonly Subject[],
  options: { rounds: number; sizes: Sizes; results: Results },
): Promise<void> {
  const subjects = all.filter(
    ({ name }) =>
      !(measurement.without as readonly string[] | undefined)?.includes(name) &&
      (name !== "threadmill-postgres" || measurement.on_postgres),
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

/** @returns whether it is worth taking again */
async function takeOnce(
  measurement: Measurement,
  subject: Subject,
  sizes: Sizes,
  results: Results,
  title: string,
): Promise<boolean> {
  const began = performance.now();
  try {
    const values = await withinLimit(() => subject.measure(measurement, sizes));
    results.add(measurement, subject.name, values);
    const again = performance.now() - began < REPEAT_LIMIT_MS;
    console.log(title, oneLine(values), again ? "" : "(took so long that it is not taken again)");
    return again;
  } catch (error) {
    const { message } = error as Error;
    results.fail(measurement, subject.name, message);
    console.log(title, "failed:", message);
    return false;
  }
}

/** Ends the subject's process when it takes too long; that fails the measurement. */
async function withinLimit<T>(measure: () => Promise<T>): Promise<T> {
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    killAll();
  }, LIMIT_MS);
  try {
    return await measure();
  } catch (error) {
    throw late ? new Error(`it took more than ${LIMIT_MS / 60_000} minutes.`) : error;
  } finally {
    clearTimeout(timer);
  }
}

function oneLine(values: Values): string {
  const parts = Object.entries(values).map(([key, value]) => `${key} ${Number(value.toPrecision(4))}`);
  return parts.join(", ");
}
