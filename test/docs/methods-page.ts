import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type CallResults, outcomesOf, readTables, type TableName, tableFile } from "../compat/methods/outcomes.ts";
import { freePort, startProcess } from "../support/process.ts";

/** What the pages about the methods of official clients have in common. */

const ROOT = resolve(import.meta.dirname, "../..");

export const cell = (text: string): string => text.replaceAll("|", "\\|");

/** An outcome as a page shows it. */
export function statusOf(outcome: string): { status: string; note: string } {
  const [, kind = "", note = ""] = /^(works|limit|not offered|refused)(?:: (.*))?$/s.exec(outcome) ?? [];
  return { status: kind === "limit" ? "works, with limitations" : kind, note };
}

/** Calls all methods on a new service, and writes their table and page. */
export async function regenerate(options: {
  table: TableName;
  page: string;
  text: () => string;
  config: string;
  call: (url: string) => Promise<Record<string, CallResults>>;
}): Promise<void> {
  const { table: name, page, text, config, call } = options;
  const data = mkdtempSync(join(tmpdir(), "threadmill-methods-"));
  const { url, child, ended } = await startProcess({ config, data, port: await freePort(), command: "dev" });
  try {
    const results = await call(url);
    const changed = Object.entries(readTables(name)).map(([client, table]) => [
      client,
      { ...table, methods: outcomesOf(results[client] ?? {}, table) },
    ]);
    const json = JSON.stringify(Object.fromEntries(changed), null, 2);
    writeFileSync(tableFile(name), `${json}\n`);
    writeFileSync(join(ROOT, page), text());
    const failures = json.split("\n").filter((line) => line.includes('": "fails: '));
    if (failures.length > 0) throw new Error(`These calls failed:\n${failures.join("\n")}`);
  } finally {
    child.kill();
    await ended;
    rmSync(data, { recursive: true });
  }
}
