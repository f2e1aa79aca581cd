import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { COUNTS, SEED, UPDATE_FROM } from "../support/counts.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import type { Entry } from "./history.ts";
import { play } from "./play.ts";
import { hasPostgresServer } from "./postgres-server.ts";

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = join(ROOT, "node_modules/.cache/threadmill-tests");
/** In CI a fault is played once or twice and nothing is timed, as other suites share the cores. */
const isLong = COUNTS.faults > 1;

const check = (file: string, flags: string[] = []) =>
  spawnSync(process.execPath, [join(import.meta.dirname, "check.ts"), file, ...flags], { encoding: "utf8" });

describe("three processes on a Postgres of their own", () => {
  it.runIf(hasPostgresServer())(
    `lose no run and end none twice, whatever fails (seed ${SEED}; FAULTS and SEED change it)`,
    {
      timeout:
        300_000 +
        COUNTS.faults * 120_000 +
        COUNTS.freezes * 20_000 +
        COUNTS.process_kills * 10_000 +
        COUNTS.rolling_restarts * 30_000,
    },
    async () => {
      const file = join(FOLDER, `faults-${SEED}.jsonl`);
      mkdirSync(FOLDER, { recursive: true });
      rmSync(file, { force: true });
      const counts = {
        freezes: COUNTS.freezes,
        kills: COUNTS.process_kills,
        cuts: isLong ? 3 : 1,
        swallowed_ms: isLong ? 30_000 : 8_000,
        slow_ms: isLong ? 60_000 : 8_000,
        restarts: COUNTS.faults,
        failovers: isLong ? 3 : 1,
        few_ms: isLong ? 30_000 : 6_000,
        rolling_restarts: COUNTS.rolling_restarts,
        clients: isLong ? 24 : 8,
        poison: isLong ? 8 : 3,
        innocents: isLong ? 120 : 16,
        burners: isLong ? 18 : 0,
        ...(UPDATE_FROM !== undefined && { earlier_program: join(UPDATE_FROM, "bin/threadmill.js") }),
      };
      await play(counts, { seed: SEED, file });
      const { status, stdout, stderr } = check(file, isLong ? ["--times"] : []);
      console.log(`${stdout}${stderr}history: ${file}`);
      expect(status).toBe(0);

      // The check notices what it is there for, in a run that no fault has met.
      const lines = readFileSync(file, "utf8").trim().split("\n");
      const entries = lines.map((line) => JSON.parse(line) as Entry);
      const received = new Set(entries.flatMap((one) => (one.kind === "received" ? [one.run_id] : [])));
      const whole = entries.find(
        (one) => one.kind === "row" && one.graph_id === "ticks" && one.epoch === 1 && received.has(one.run_id),
      ) as Extract<Entry, { kind: "row" }>;
      const isRowOf = (run_id: string | undefined) => (one: Entry) => one.kind === "row" && one.run_id === run_id;
      const earlier = entries.flatMap((one) => (one.kind === "accepted" && one.after ? [one.after] : []))[0];
      const drained = entries.find((one) => one.kind === "accepted" && one.fault === "drained");
      const changes: [name: string, of: (one: Entry) => boolean, change: (line: string) => string[]][] = [
        ["a run is not there", isRowOf(whole.run_id), () => []],
        ["a run did not succeed", isRowOf(whole.run_id), (line) => [line.replace('"success"', '"error"')]],
        [
          "a step is lost",
          (one) => one.kind === "received" && one.run_id === whole.run_id,
          (line) => [line.replace("[0,", "[0,0,")],
        ],
        [
          "runs of a thread are out of order",
          isRowOf(earlier),
          (line) => [line.replace(/"last":"[^"]*"/, '"last":"ffffffff-ffff-6fff-bfff-ffffffffffff"')],
        ],
        ["a step is repeated", (one) => one.kind === "step" && one.run_id === whole.run_id, (line) => [line, line]],
        [
          "an answer is a 500",
          (one) => one.kind === "probe" && one.fault === "restarted",
          (line) => [line.replace(/"status":\d+/, '"status":500')],
        ],
        [
          "a drain costs an attempt",
          isRowOf(drained?.kind === "accepted" ? drained.run_id : undefined),
          (line) => [line.replace('"attempt":1', '"attempt":2')],
        ],
        [
          "a poison run succeeds",
          (one) => one.kind === "row" && one.graph_id === "exits",
          (line) => [line.replace('"error"', '"success"')],
        ],
        [
          "a rule is broken",
          (one) => one.kind === "begin",
          (line) => [line, JSON.stringify({ t: 0, kind: "violation", rule: "a rule", rows: [] })],
        ],
      ];
      for (const [name, isMeant, change] of changes) {
        const at = entries.findIndex(isMeant);
        const changed = `${file}.changed`;
        writeFileSync(changed, lines.flatMap((line, index) => (index === at ? change(line) : [line])).join("\n"));
        expect([name, check(changed).status]).toEqual([name, 1]);
        rmSync(changed);
      }
    },
  );
});

it("the network of the faults delivers packets in their order when a delay ends", async () => {
  let received = "";
  const server = createServer((socket) => socket.on("data", (data) => (received += data)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy = await startProxy(`postgres://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const client = connect(Number(new URL(proxy.url).port), "127.0.0.1");
  await once(client, "connect");
  proxy.degrade({ delay_ms: 200, resets: 0, random: () => 1 });
  const passed = Promise.withResolvers<void>();
  proxy.change((packet) => {
    passed.resolve();
    return packet;
  });
  client.write("1");
  await passed.promise;
  proxy.degrade(undefined);
  client.write("2");
  await until("both have arrived", async () => received.length === 2);
  expect(received).toBe("12");
  client.destroy();
  await proxy.close();
  server.close();
});
