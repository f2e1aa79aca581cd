import type { Readable } from "node:stream";
import type { ContainerLog, LogFrame } from "../log-follower.ts";
import { stderrTail } from "../log-line.ts";
import { type Engine, undefinedIfMissing } from "./engine.ts";

const TAIL_LINES = 20;

const BOTH = { stdout: true, stderr: true, timestamps: true } as const;

export const logOf = (engine: Engine, id: string): ContainerLog => ({
  follow: (since) =>
    engine.callLong(
      async (docker) => (await docker.getContainer(id).logs({ ...BOTH, follow: true, since })) as Readable,
    ),
  isRunning: () =>
    engine.call(
      async (docker) => (await undefinedIfMissing(docker.getContainer(id).inspect()))?.State.Running === true,
    ),
  frames: () => new LogFrames(),
});

/** Returns the last lines of a container's output; an empty string if there is no output or no container. */
export async function containerStderrTail(engine: Engine, id: string): Promise<string> {
  const tail = TAIL_LINES;
  const written = await engine.call((docker) =>
    undefinedIfMissing(docker.getContainer(id).logs({ ...BOTH, follow: false, tail })),
  );
  const frames = new LogFrames().add(written ?? Buffer.alloc(0));
  return stderrTail(frames.map(({ bytes }) => bytes.toString("utf8")));
}

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

function frameOf(stream: LogFrame["stream"], content: Buffer): LogFrame {
  const space = content.indexOf(SPACE);
  return { stream, at: content.toString("latin1", 0, space), bytes: Buffer.from(content.subarray(space + 1)) };
}
