import type { InputFile } from "../input-file.ts";

export interface Line {
  text: string;
  /** From 1. */
  number: number;
}

const NEWLINE = 0x0a;

/** The lines of a file that hold something. Only a newline ends a line: JSON texts may hold U+2028, which others take for one. */
export async function* linesOf(file: InputFile): AsyncGenerator<Line> {
  let held: Buffer[] = [];
  let number = 0;
  for await (const chunk of file.chunks()) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      held.push(chunk.subarray(from, end));
      const text = textOf(held);
      held = [];
      from = end + 1;
      number++;
      if (text !== "") yield { text, number };
    }
    held.push(chunk.subarray(from));
  }
  const last = textOf(held);
  if (last !== "") yield { text: last, number: number + 1 };
}

const textOf = (parts: Buffer[]): string =>
  (parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString().trim();
