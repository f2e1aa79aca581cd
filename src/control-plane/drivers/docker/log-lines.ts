/** Position in a stream: after all frames with an earlier timestamp than `at` and the first `frames` frames with this timestamp. */
interface StreamPosition {
  at: string;
  frames: number;
}

export type LogPosition = Readonly<Partial<Record<StreamName, StreamPosition>>>;

export interface TimedLine {
  at_ms: number;
  text: string;
}

/** Longer lines are split. */
const MAX_BYTES = 64 * 1024;
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
    const isComplete = bytes.at(-1) === NEWLINE || this.#parts.reduce((sum, { length }) => sum + length, 0) > MAX_BYTES;
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
interface LogFrame {
  stream: StreamName;
  /** Docker's timestamp with nanoseconds: `2026-11-20T10:00:00.000000001Z`. Increases within a stream, unless the clock is set back. */
  at: string;
  bytes: Buffer;
}

type StreamName = "stdout" | "stderr";

const HEADER_BYTES = 8;
const STDERR = 2;
const SPACE = 0x20;

/**
 * Splits a Docker log into frames: one byte for the stream, three unused bytes, four bytes for the length, and then a timestamp,
 * a space and the output (Engine API, "Attach to a container").
 */
export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);

  add(chunk: Uint8Array): LogFrame[] {
    let bytes = Buffer.concat([this.#rest, chunk]);
    const frames: LogFrame[] = [];
    while (bytes.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + bytes.readUInt32BE(4);
      if (bytes.length < end) break;
      frames.push(frameOf(bytes[0] === STDERR ? "stderr" : "stdout", bytes.subarray(HEADER_BYTES, end)));
      bytes = bytes.subarray(end);
    }
    this.#rest = Buffer.from(bytes);
    return frames;
  }
}

function frameOf(stream: StreamName, content: Buffer): LogFrame {
  const space = content.indexOf(SPACE);
  return { stream, at: content.toString("latin1", 0, space), bytes: Buffer.from(content.subarray(space + 1)) };
}
