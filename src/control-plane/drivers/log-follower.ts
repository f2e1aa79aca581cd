import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { replaceFile } from "../../platform/lib/replace-file.ts";
import { backOffMs } from "./driver.ts";
import { type LogReceiver, sendLines } from "./log-line.ts";

/** Pause between two reads of output. */
const BATCH_MS = 200;
/** A connection that lasted longer than this resets the back-off. */
const HEALTHY_MS = 60_000;
/** Time limit for reading the rest of an ended container's log. */
const END_TIMEOUT_MS = 10_000;

export interface ContainerLog {
  /** Streams the output since a Unix time in seconds. The stream ends when the container ends. */
  follow(since: number): Promise<Readable>;
  isRunning(): Promise<boolean>;
  /** Returns a parser of the stream. */
  frames(): { add(chunk: Uint8Array): LogFrame[] };
}

/** Sends the output of a container line by line. The position is written to a file only after the lines before it are stored. */
export class LogFollower {
  readonly #log: ContainerLog;
  readonly #position: LogPositionFile;
  readonly #receiver: LogReceiver;
  readonly #onError: (error: unknown) => void;
  readonly #stopping = new AbortController();
  readonly #ending = new AbortController();
  readonly #running: Promise<void>;
  #stream: Readable | undefined;

  constructor(log: ContainerLog, position: LogPositionFile, receiver: LogReceiver, onError: (error: unknown) => void) {
    this.#log = log;
    this.#position = position;
    this.#receiver = receiver;
    this.#onError = onError;
    this.#running = this.#run();
  }

  /** Stops following the log. With `last`, first reads the rest of the log if the container has ended. */
  async stop({ last }: { last: boolean }): Promise<void> {
    this.#ending.abort();
    if (last) {
      const over = new AbortController();
      const late = delay(END_TIMEOUT_MS, undefined, { signal: over.signal }).catch(() => undefined);
      await Promise.race([this.#running, late]);
      over.abort();
    }
    this.#stopping.abort();
    this.#stream?.destroy();
    await this.#running;
  }

  /** Follows the log and reconnects after errors. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted) {
      const began = performance.now();
      try {
        if (await this.#follow()) return;
      } catch (error) {
        if (signal.aborted) return;
        this.#onError(error);
      }
      // A long connection was healthy, so its end counts as the first failure again.
      failures = performance.now() - began > HEALTHY_MS ? 1 : failures + 1;
      await delay(backOffMs(failures), undefined, { signal: AbortSignal.any([signal, this.#ending.signal]) }).catch(
        () => undefined,
      );
    }
  }

  /** Returns true when the container has ended and the whole log was read. */
  async #follow(): Promise<boolean> {
    const from = await this.#position.read();
    const stream = await this.#log.follow(sinceOf(from));
    this.#stream = stream;
    if (this.#stopping.signal.aborted) stream.destroy();
    const frames = this.#log.frames();
    const lines = new LogLines(from);
    for await (const chunk of stream) {
      await this.#send(lines.add(frames.add(chunk)), lines);
      await delay(BATCH_MS, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
    if (await this.#log.isRunning()) return false;
    await this.#send(lines.end(), lines);
    return true;
  }

  async #send(timed: readonly TimedLine[], { position }: LogLines): Promise<void> {
    if (timed.length === 0) return;
    await sendLines(timed, this.#receiver, this.#stopping);
    await this.#position.write(position);
  }
}

/** Stores the log position of one container. `read` ignores the position of an earlier container. */
interface LogPositionFile {
  read(): Promise<LogPosition>;
  write(position: LogPosition): Promise<void>;
}

const fileOf = (folder: string, instance_id: string) => join(folder, `${instance_id}.json`);

export function positionFile(folder: string, instance_id: string, container: string): LogPositionFile {
  const file = fileOf(folder, instance_id);
  return {
    async read() {
      const text = await readFile(file, "utf8").catch(() => "");
      try {
        const stored = JSON.parse(text) as { container?: string; position?: LogPosition };
        return (stored.container === container && stored.position) || {};
      } catch {
        // No file, or one that is cut off, as after a power failure.
        return {};
      }
    },
    async write(position) {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await replaceFile(file, JSON.stringify({ container, position }));
    },
  };
}

export const removePosition = (folder: string, instance_id: string): Promise<void> =>
  rm(fileOf(folder, instance_id), { force: true });

/** Position in a stream: after all frames with an earlier timestamp than `at` and the first `frames` frames with this timestamp. */
interface StreamPosition {
  at: string;
  frames: number;
}

export type LogPosition = Readonly<Partial<Record<StreamName, StreamPosition>>>;

interface TimedLine {
  at_ms: number;
  text: string;
}

/** Longer lines are split. */
const MAX_LINE_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/**
 * Assembles lines from the frames of a log. Frames before the start position are skipped. The frames of stdout and of stderr are
 * each in order, but not relative to each other, so each stream has its own position.
 */
export class LogLines {
  readonly #streams: Record<StreamName, StreamLines>;

  constructor(from: LogPosition) {
    this.#streams = { stdout: new StreamLines(from.stdout), stderr: new StreamLines(from.stderr) };
  }

  add(frames: readonly LogFrame[]): TimedLine[] {
    return frames.flatMap((frame) => this.#streams[frame.stream].add(frame) ?? []);
  }

  /** Returns the incomplete last lines of both streams. */
  end(): TimedLine[] {
    return Object.values(this.#streams).flatMap((stream) => stream.end() ?? []);
  }

  /** Position after the last complete line. */
  get position(): LogPosition {
    const { stdout, stderr } = this.#streams;
    return {
      ...(stdout.position && { stdout: stdout.position }),
      ...(stderr.position && { stderr: stderr.position }),
    };
  }
}

class StreamLines {
  position: StreamPosition | undefined;
  readonly #from: StreamPosition | undefined;
  #read: StreamPosition = { at: "", frames: 0 };
  #is_past = false;
  #parts: Buffer[] = [];

  constructor(from: StreamPosition | undefined) {
    this.position = from;
    this.#from = from;
  }

  add({ at, bytes }: LogFrame): TimedLine | undefined {
    this.#read = { at, frames: at === this.#read.at ? this.#read.frames + 1 : 1 };
    if (this.#isBeforeStart()) return undefined;
    this.#parts.push(bytes);
    const isComplete =
      bytes.at(-1) === NEWLINE || this.#parts.reduce((sum, { length }) => sum + length, 0) > MAX_LINE_BYTES;
    return isComplete ? this.end() : undefined;
  }

  end(): TimedLine | undefined {
    if (this.#parts.length === 0) return undefined;
    const text = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    this.position = this.#read;
    return { at_ms: Date.parse(this.#read.at), text };
  }

  /** Whether the current frame is before the start position. Always false after the first false, even if the clock is set back. */
  #isBeforeStart(): boolean {
    const { at, frames } = this.#read;
    this.#is_past ||= !this.#from || at > this.#from.at || (at === this.#from.at && frames > this.#from.frames);
    return !this.#is_past;
  }
}

/** Reading starts this much earlier, because Docker can store simultaneous output of stdout and stderr out of order. */
const MARGIN_S = 1;

/** Returns the Unix time in seconds from which the log must be read to continue at a position; 0 for the whole log. */
export function sinceOf({ stdout, stderr }: LogPosition): number {
  const times = [stdout, stderr].flatMap((position) => (position ? [Date.parse(position.at)] : []));
  return Math.max(0, Math.floor(Math.max(0, ...times) / 1000) - MARGIN_S);
}

/** A frame contains a line of output, or a part of a long line. */
export interface LogFrame {
  stream: StreamName;
  /** Timestamp with nanoseconds: `2026-11-20T10:00:00.000000001Z`. Increases within a stream, unless the clock is set back. */
  at: string;
  bytes: Buffer;
}

type StreamName = "stdout" | "stderr";
