import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { backOff } from "../../reconcile/back-off.ts";
import type { InstanceOrder } from "../driver.ts";
import { readLogLine } from "../log-line.ts";
import { LogFrames } from "./log-frames.ts";
import { LogLines, sinceOf, type WrittenLine } from "./log-lines.ts";
import type { LogPositionFile } from "./log-position.ts";

/** What comes within this time is told together. */
const GATHER_MS = 200;
/** The log of a container that has ended is told after this, or never will be. */
const END_WITHIN_MS = 10_000;

/** The log of a container, as its engine has it. */
export interface ContainerLog {
  /** What it has written since this second, and what it writes from now on; it ends with the container. */
  follow(since: number): Promise<Readable>;
  isRunning(): Promise<boolean>;
}

/**
 * Tells what a container writes, line by line. How far it has come is noted when the lines before it are kept by whoever was told:
 * after a restart it goes on from there.
 */
export class LogFollower {
  readonly #log: ContainerLog;
  readonly #position: LogPositionFile;
  readonly #order: Pick<InstanceOrder, "log" | "kept">;
  readonly #onError: (error: unknown) => void;
  readonly #stopping = new AbortController();
  readonly #hurrying = new AbortController();
  readonly #running: Promise<void>;
  #stream: Readable | undefined;

  constructor(
    log: ContainerLog,
    position: LogPositionFile,
    order: Pick<InstanceOrder, "log" | "kept">,
    onError: (error: unknown) => void,
  ) {
    this.#log = log;
    this.#position = position;
    this.#order = order;
    this.#onError = onError;
    this.#running = this.#run();
  }

  /** Ends; with `last`, when all is told that a container has written which has ended. */
  async stop({ last }: { last: boolean }): Promise<void> {
    this.#hurrying.abort();
    if (last) {
      const over = new AbortController();
      const late = delay(END_WITHIN_MS, undefined, { signal: over.signal }).catch(() => undefined);
      await Promise.race([this.#running, late]);
      over.abort();
    }
    this.#stopping.abort();
    this.#stream?.destroy();
    await this.#running;
  }

  /** A connection that breaks is made again. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        if (await this.#follow()) return;
      } catch (error) {
        if (signal.aborted) return;
        this.#onError(error);
      }
      await delay(backOff(failures), undefined, { signal: AbortSignal.any([signal, this.#hurrying.signal]) }).catch(
        () => undefined,
      );
    }
  }

  /** True when the container has ended, and all is told. */
  async #follow(): Promise<boolean> {
    const from = await this.#position.read();
    const stream = await this.#log.follow(sinceOf(from));
    this.#stream = stream;
    if (this.#stopping.signal.aborted) stream.destroy();
    const frames = new LogFrames();
    const lines = new LogLines(from);
    for await (const piece of stream) {
      await this.#tell(lines.add(frames.add(piece)), lines);
      await delay(GATHER_MS, undefined, { signal: this.#hurrying.signal }).catch(() => undefined);
    }
    if (await this.#log.isRunning()) return false;
    await this.#tell(lines.end(), lines);
    return true;
  }

  async #tell(written: readonly WrittenLine[], { position }: LogLines): Promise<void> {
    if (written.length === 0) return;
    for (const { text, at_ms } of written) {
      const line = readLogLine(text, at_ms);
      if (line) this.#order.log(line);
    }
    await this.#kept();
    await this.#position.write(position);
  }

  /** Whoever does not keep them any more is told nothing more: the next one to ask for the instance hears of these lines again. */
  async #kept(): Promise<void> {
    try {
      await this.#order.kept?.();
    } catch (error) {
      this.#stopping.abort();
      throw error;
    }
  }
}
