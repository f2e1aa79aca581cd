import { open } from "node:fs/promises";
import { lastWordsOf } from "../stderr-tail.ts";

const LOOK_BACK_BYTES = 16_384;

/** What a process said at last. Empty when it said nothing. */
export async function lastWords(file: string): Promise<string> {
  const handle = await open(file, "r").catch(() => undefined);
  if (!handle) return "";
  try {
    const { size } = await handle.stat();
    const from = Math.max(0, size - LOOK_BACK_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(LOOK_BACK_BYTES), 0, LOOK_BACK_BYTES, from);
    return lastWordsOf(buffer.toString("utf8", 0, bytesRead).split("\n"));
  } finally {
    await handle.close();
  }
}
