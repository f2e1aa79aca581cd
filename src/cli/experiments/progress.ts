/** How far a command is. */
export interface Step {
  /** From 0 to 1; undefined when nobody knows the end. */
  done?: number;
  rows: number;
}

type Output = Pick<NodeJS.WriteStream, "write"> & { isTTY?: boolean; columns?: number };

const BAR_CHARS = 24;

/** A terminal's line is renewed this often; elsewhere, as in a log, a line each is enough. */
const TERMINAL_MS = 100;
const LOG_MS = 5_000;

/** The escape sequence that clears the rest of a line. */
const CLEAR = "\x1b[K";

/** Tells how far a command is: a bar on a terminal, and otherwise now and then a line. */
export class Progress {
  readonly #output: Output;
  readonly #now: () => number;
  readonly #begun: number;
  #shown: number;

  /** @param now milliseconds of any clock */
  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
    this.#begun = now();
    this.#shown = this.#begun;
  }

  /** Shows the step, unless another was shown a moment ago. */
  show(step: Step): void {
    const now = this.#now();
    if (now - this.#shown < (this.#output.isTTY ? TERMINAL_MS : LOG_MS)) return;
    this.#shown = now;
    if (this.#output.isTTY) this.#rewrite(`${bar(step)} ${this.#words(step)}`);
    else this.#write(`${this.#words(step)}\n`);
  }

  /** On a terminal, shows what is waited for when there is no more to count. */
  await(step: Step, what: string): void {
    if (this.#output.isTTY) this.#rewrite(`${count(step.rows, "row")}: ${what}`);
  }

  /** Shows the last step in any case: where it is no terminal, the log has it. */
  end(step: Step): void {
    if (this.#output.isTTY) this.clear();
    else this.#write(`${this.#words(step)}\n`);
  }

  /** On a terminal, frees the line for what comes next. */
  clear(): void {
    if (this.#output.isTTY) this.#write(`\r${CLEAR}`);
  }

  #words({ done, rows }: Step): string {
    const seconds = (this.#now() - this.#begun) / 1000;
    const rate = seconds > 0 ? Math.round(rows / seconds) : 0;
    const percent = done === undefined ? "" : `${Math.floor(done * 100)} %, `;
    return `${percent}${count(rows, "row")}, ${count(rate, "row")}/s`;
  }

  /** Writes over the line, which must not be broken: only its last part could be written over. */
  #rewrite(line: string): void {
    this.#write(`\r${line.slice(0, Math.max(0, (this.#output.columns ?? 80) - 1))}${CLEAR}`);
  }

  #write(text: string): void {
    this.#output.write(text);
  }
}

function bar({ done }: Step): string {
  if (done === undefined) return "";
  const full = Math.round(done * BAR_CHARS);
  return `${"█".repeat(full)}${"░".repeat(BAR_CHARS - full)}`;
}

/** `1,234 rows`, `1 row`. */
export const count = (n: number, noun: string): string => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
