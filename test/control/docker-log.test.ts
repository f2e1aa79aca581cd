import { describe, expect, it } from "vitest";
import { LogFrames } from "../../src/control-plane/drivers/docker/container-log.ts";
import { LogLines, type LogPosition, sinceOf } from "../../src/control-plane/drivers/log-follower.ts";

type Written = readonly [stream: "stdout" | "stderr", nanoseconds: number, text: string];

const at = (nanoseconds: number) => `2026-11-20T10:00:00.${String(nanoseconds).padStart(9, "0")}Z`;

/** What the engine sends of it. */
const sent = (written: readonly Written[]): Buffer =>
  Buffer.concat(
    written.map(([stream, nanoseconds, text]) => {
      const content = Buffer.from(`${at(nanoseconds)} ${text}`);
      const header = Buffer.alloc(8);
      header[0] = stream === "stderr" ? 2 : 1;
      header.writeUInt32BE(content.length, 4);
      return Buffer.concat([header, content]);
    }),
  );

const LOG: readonly Written[] = [
  ["stdout", 1, "one\n"],
  ["stdout", 1, "two in the same moment\n"],
  ["stderr", 3, "äöü\n"],
  // The two streams are not in order between each other.
  ["stdout", 2, "three\n"],
  ["stdout", 5, "a long line, "],
  ["stderr", 5, "between its parts\n"],
  ["stdout", 5, "in two parts\n"],
  ["stdout", 9, "no end yet"],
];
const TEXTS = ["one", "two in the same moment", "äöü", "three", "between its parts", "a long line, in two parts"];

const read = (lines: LogLines, bytes: Buffer, size = bytes.length): string[] => {
  const frames = new LogFrames();
  const received: string[] = [];
  for (let from = 0; from < bytes.length; from += size) {
    received.push(...lines.add(frames.add(bytes.subarray(from, from + size))).map(({ text }) => text.trimEnd()));
  }
  return received;
};

describe("the log of a container", () => {
  it.each([1, 2, 7, 64])("becomes the same lines, however it is cut: %i bytes at a time", (size) => {
    const lines = new LogLines({});
    expect(read(lines, sent(LOG), size)).toEqual(TEXTS);
    expect(lines.end().map(({ text }) => text)).toEqual(["no end yet"]);
  });

  it("continues after any line, without repeated or missing lines", () => {
    for (let stop = 0; stop <= LOG.length; stop++) {
      const first = new LogLines({});
      const before = read(first, sent(LOG.slice(0, stop)));
      const logsPersisted = JSON.parse(JSON.stringify(first.position)) as LogPosition;
      const after = read(new LogLines(logsPersisted), sent(LOG));
      expect([...before, ...after].sort(), `after ${stop} frames`).toEqual([...TEXTS].sort());
    }
  });

  it("continues when the clock was set back", () => {
    const lines = new LogLines({ stdout: { at: at(1), frames: 2 } });
    const back: Written = ["stdout", 0, "set back\n"];
    expect(read(lines, sent([...LOG.slice(0, 4), back]))).toEqual(["äöü", "three", "set back"]);
  });

  it("is read again from a little before the last line on, and from its beginning when none was received", () => {
    expect(sinceOf({})).toBe(0);
    const place = { at: "2026-11-20T10:00:00.500000000Z", frames: 1 };
    const earlier = { at: "2026-11-20T09:00:00.000000000Z", frames: 1 };
    expect(sinceOf({ stdout: earlier, stderr: place })).toBe(Date.parse("2026-11-20T09:59:59Z") / 1000);
  });
});
