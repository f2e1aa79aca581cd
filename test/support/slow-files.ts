import type { Reporter, TestModule, Vitest } from "vitest/node";

const SHOWN = 10;
/** Fewer files than this are a part of the suite, in which each has a larger share. */
const MIN_FILES = 100;

export interface SlowFilesOptions {
  /** A file that takes a larger part of the time of all files makes the run fail, on any machine; undefined: none does. */
  max_share: number | undefined;
  /** Lines to close with: what was not run, and how to get it. */
  notes: readonly string[];
}

/** Prints the ten slowest files with their share of the time, so that what makes the suite slow is seen when it is added. */
export class SlowFiles implements Reporter {
  readonly #options: SlowFilesOptions;
  #isPart = false;

  constructor(options: SlowFilesOptions) {
    this.#options = options;
  }

  onInit(vitest: Vitest): void {
    this.#isPart = vitest.config.shard !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules
      .map((module) => {
        const { collectDuration, setupDuration, duration } = module.diagnostic();
        const name = `${module.project.name} ${module.relativeModuleId}`;
        return { name, seconds: (collectDuration + setupDuration + duration) / 1000 };
      })
      .toSorted((a, b) => b.seconds - a.seconds);
    const all = files.reduce((sum, { seconds }) => sum + seconds, 0);
    console.log(`\n Slowest files (of ${files.length}, ${Math.round(all)} s of work):`);
    for (const { name, seconds } of files.slice(0, SHOWN))
      console.log(
        `  ${seconds.toFixed(1).padStart(6)} s  ${((100 * seconds) / all).toFixed(0).padStart(3)} %  ${name}`,
      );
    const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
    const count = (state: string) => states.filter((found) => found === state).length;
    // .ci/run adds these lines up.
    console.log(`\n Totals: ${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
    const { max_share, notes } = this.#options;
    if (notes.length > 0) console.log(`\n ${notes.join("\n ")}`);
    const slow = files.filter(({ seconds }) => max_share !== undefined && seconds > max_share * all);
    if (slow.length === 0 || files.length < MIN_FILES || this.#isPart) return;
    const names = slow.map(({ name }) => name).join(", ");
    console.error(`\n Files of "npm test" may take ${100 * (max_share ?? 0)} % of its time: split or move ${names}.`);
    process.exitCode = 1;
  }
}
