import { readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LogTail, offsetFile } from "../../src/control-plane/drivers/process/log-tail.ts";
import { temporaryFolder } from "./deployed-project.ts";

const LIMIT_BYTES = 64 * 2 ** 20;

/** Reads a file to its end. @returns the lines, and the errors */
async function read(file: string): Promise<string[]> {
  const lines: string[] = [];
  const onError = (error: unknown) => lines.push(String(error));
  const receiver = {
    log: ({ message }: { message: string }) => void lines.push(message),
    logsPersisted: async () => undefined,
  };
  await new LogTail(file, receiver as never, onError).stop({ last: true });
  return lines;
}

it("the output of an instance that writes faster than it is stored is skipped, and the file becomes empty", async () => {
  const file = join(temporaryFolder(), "output");
  await writeFile(file, "first\n");
  await truncate(file, LIMIT_BYTES + 100);
  expect(await read(file)).toEqual([
    `${LIMIT_BYTES + 100} bytes of output were skipped, because they were written faster than they can be stored.`,
  ]);
  expect((await stat(file)).size).toBe(0);
  await writeFile(file, "next\n");
  expect(await read(file)).toEqual(["next"]);
});

it("output after a truncation whose record was lost is read from the beginning", async () => {
  const file = join(temporaryFolder(), "output");
  await writeFile(file, "one\ntwo");
  await writeFile(offsetFile(file), String(LIMIT_BYTES));
  expect(await read(file)).toEqual(["one", "two"]);
  expect(await readFile(offsetFile(file), "utf8")).toBe("7");
});
