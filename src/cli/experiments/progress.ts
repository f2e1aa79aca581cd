export interface ProgressStep {
  /** Completed fraction from 0 to 1; undefined when the total is unknown. */
  fraction?: number;
  rows: number;
}

type Output = Pick<NodeJS.WriteStream, "write"> & { isTTY?: boolean; columns?: number };

const BAR_CHARS = 24;

/** Minimum interval between updates: on a terminal, an update redraws the line; in a log, it adds a line. */
const TERMINAL_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 5_000;

/** Clears the rest of the line. */
const CLEAR = "\x1b[K";

/** Shows the progress of a command: a bar on a terminal, a line every few seconds in a log. */
export class Progress {
  readonly #output: Output;
  readonly #now: () => number;
  readonly #started_at: number;
  #shown_at: number;

  /** @param now returns a time in milliseconds; only differences are used */
  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
    this.#started_at = now();
    this.#shown_at = this.#started_at;
  }

  show(step: ProgressStep): void {
    const now = this.#now();
    if (now - this.#shown_at < (this.#output.isTTY ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS)) return;
    this.#shown_at = now;
    if (this.#output.isTTY) this.#redraw(`${bar(step)} ${this.#format(step)}`);
    else this.#output.write(`${this.#format(step)}\n`);
  }

  showWait(step: ProgressStep, reason: string): void {
    if (this.#output.isTTY) this.#redraw(`${countOf(step.rows, "row")}: ${reason}`);
  }

  /** Clears the bar on a terminal; writes the last step to a log. */
  end(step: ProgressStep): void {
    if (this.#output.isTTY) this.clear();
    else this.#output.write(`${this.#format(step)}\n`);
  }

  clear(): void {
    if (this.#output.isTTY) this.#output.write(`\r${CLEAR}`);
  }

  #format({ fraction, rows }: ProgressStep): string {
    const seconds = (this.#now() - this.#started_at) / 1000;
    const rate = seconds > 0 ? Math.round(rows / seconds) : 0;
    const percent = fraction === undefined ? "" : `${Math.floor(fraction * 100)} %, `;
    return `${percent}${countOf(rows, "row")}, ${countOf(rate, "row")}/s`;
  }

  /** Redraws the line. Truncates it to the terminal width, because only the last row of a wrapped line can be overwritten. */
  #redraw(line: string): void {
    this.#output.write(`\r${line.slice(0, Math.max(0, (this.#output.columns ?? 80) - 1))}${CLEAR}`);
  }
}

function bar({ fraction }: ProgressStep): string {
  if (fraction === undefined) return "";
  const full = Math.round(fraction * BAR_CHARS);
  return `${"█".repeat(full)}${"░".repeat(BAR_CHARS - full)}`;
}

/** Formats a count with its noun: `1,234 rows`, `1 row`. */
export const countOf = (n: number, noun: string): string => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
