/** Something that a container wrote: a line, or a part of a long one. */
export interface LogFrame {
  stream: StreamName;
  /** As the engine noted it, to the nanosecond: `2026-11-20T10:00:00.000000001Z`. Within a stream it only goes on. */
  at: string;
  bytes: Buffer;
}

export type StreamName = "stdout" | "stderr";

const HEADER_BYTES = 8;
const STDERR = 2;
const SPACE = 0x20;

/**
 * Cuts what the engine sends of a log into its frames: one byte that names the stream, three without meaning, four for the length,
 * and then a time, a space and what was written (Engine API, "Attach to a container").
 */
export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that end in this piece. */
  add(piece: Uint8Array): LogFrame[] {
    let bytes = Buffer.concat([this.#rest, piece]);
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
