import type { LogFrame, StreamName } from "./log-frames.ts";

/** How far a stream has been told: all frames before this time, and so many of those at it. */
interface Place {
  at: string;
  frames: number;
}

export type LogPosition = Readonly<Partial<Record<StreamName, Place>>>;

export interface WrittenLine {
  at_ms: number;
  text: string;
}

/** A line that goes on longer than this is told in pieces. */
const MAX_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/**
 * Makes lines of the frames of a log that is read from a position on, or from anywhere before it: what was told is left out. The
 * two streams of a container are each in order, but not between each other, so each has a place of its own.
 */
export class LogLines {
  readonly #streams: Record<StreamName, StreamLines>;

  constructor(from: LogPosition) {
    this.#streams = { stdout: new StreamLines(from.stdout), stderr: new StreamLines(from.stderr) };
  }

  /** The lines that end in these frames. */
  add(frames: readonly LogFrame[]): WrittenLine[] {
    return frames.flatMap((frame) => this.#streams[frame.stream].add(frame) ?? []);
  }

  /** What is left when nothing more comes. */
  end(): WrittenLine[] {
    return Object.values(this.#streams).flatMap((stream) => stream.end() ?? []);
  }

  /** Behind the last line that has ended. */
  get position(): LogPosition {
    const { stdout, stderr } = this.#streams;
    return { ...(stdout.told && { stdout: stdout.told }), ...(stderr.told && { stderr: stderr.told }) };
  }
}

class StreamLines {
  told: Place | undefined;
  readonly #from: Place | undefined;
  #read: Place = { at: "", frames: 0 };
  #is_past = false;
  #pieces: Buffer[] = [];

  constructor(from: Place | undefined) {
    this.told = from;
    this.#from = from;
  }

  add({ at, bytes }: LogFrame): WrittenLine | undefined {
    this.#read = { at, frames: at === this.#read.at ? this.#read.frames + 1 : 1 };
    if (this.#wasTold()) return undefined;
    this.#pieces.push(bytes);
    const isWhole = bytes.at(-1) === NEWLINE || this.#pieces.reduce((sum, { length }) => sum + length, 0) > MAX_BYTES;
    return isWhole ? this.end() : undefined;
  }

  end(): WrittenLine | undefined {
    if (this.#pieces.length === 0) return undefined;
    const text = Buffer.concat(this.#pieces).toString("utf8");
    this.#pieces = [];
    this.told = this.#read;
    return { at_ms: Date.parse(this.#read.at), text };
  }

  /** Only at the beginning: afterwards a clock that was set back changes nothing. */
  #wasTold(): boolean {
    const { at, frames } = this.#read;
    this.#is_past ||= !this.#from || at > this.#from.at || (at === this.#from.at && frames > this.#from.frames);
    return !this.#is_past;
  }
}

/** The engine writes the two streams down as they come, but for what both say in one moment. */
const MARGIN_S = 1;

/** From which second on a log has to be read to go on at a position; 0: from its beginning. */
export function sinceOf({ stdout, stderr }: LogPosition): number {
  const times = [stdout, stderr].flatMap((place) => (place ? [Date.parse(place.at)] : []));
  return Math.max(0, Math.floor(Math.max(0, ...times) / 1000) - MARGIN_S);
}
