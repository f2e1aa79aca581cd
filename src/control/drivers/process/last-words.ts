import { open } from "node:fs/promises";
import { readLogLine } from "./log-line.ts";

const LOOK_BACK_BYTES = 16_384;
const MOST_LINES = 5;
const MOST_LENGTH = 1_000;

/** What a process said at last, for the one who wants to know why it ended. Empty when it said nothing. */
export async function lastWords(file: string): Promise<string> {
  const handle = await open(file, "r").catch(() => undefined);
  if (!handle) return "";
  try {
    const { size } = await handle.stat();
    const from = Math.max(0, size - LOOK_BACK_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(LOOK_BACK_BYTES), 0, LOOK_BACK_BYTES, from);
    const lines = buffer.toString("utf8", 0, bytesRead).split("\n");
    const said = lines.map((line) => readLogLine(line, 0)?.message ?? "").filter((line) => line !== "");
    return said.slice(-MOST_LINES).join("\n").slice(-MOST_LENGTH);
  } finally {
    await handle.close();
  }
}
