import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EndedEarly, freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { until } from "../support/until.ts";

const CONFIG = "test/graphs/shared/langgraph.json";
const RUN = { assistant_id: "steps", input: {} };

/** What the operator gets to see when the files of the embedded database are not as they were left. */
describe("a data folder", () => {
  let folder: string;
  let server: ServerProcess | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "threadmill-data-"));
  });
  afterEach(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  const file = () => join(folder, "threadmill.db");
  const start = async () => {
    server = await startProcess({ data: folder, port: await freePort(), config: CONFIG });
    return server;
  };
  const kill = async (signal: NodeJS.Signals = "SIGKILL") => {
    server?.child.kill(signal);
    await server?.ended;
    server = undefined;
  };
  const run = ({ url }: ServerProcess) => fetch(`${url}/runs/wait`, { method: "POST", body: JSON.stringify(RUN) });
  const noted = () => existsSync(`${file()}.note`) && JSON.parse(readFileSync(`${file()}.note`, "utf8")).runs;
  /** Some runs, of which the note beside the database knows; then the process is killed. */
  const used = async () => {
    const first = await start();
    for (let i = 0; i < 5; i++) expect((await run(first)).status).toBe(200);
    await until("they are noted", async () => noted() === 5, 15_000);
    await kill();
  };
  const refusal = async (): Promise<string> => {
    const error = await start().then(
      () => new Error("It started."),
      (cause: unknown) => cause as Error,
    );
    expect(error).toBeInstanceOf(EndedEarly);
    // A sentence, without a stack.
    expect(error.message).not.toContain("    at ");
    return error.message;
  };

  it("whose log has a damaged page in the middle is refused, until the operator accepts what is left", async () => {
    await used();
    const log = readFileSync(`${file()}-wal`);
    log.fill(0x55, Math.floor(log.length / 3), Math.floor(log.length / 3) + 4096);
    writeFileSync(`${file()}-wal`, log);
    expect(await refusal()).toMatch(/Runs are missing .* at least 5 is expected/);

    rmSync(`${file()}.note`);
    expect((await run(await start())).status).toBe(200);
  });

  it("whose database was emptied is refused", async () => {
    await used();
    await start();
    // What the log has is in the database now.
    await kill("SIGTERM");
    truncateSync(file(), 0);
    expect(await refusal()).toMatch(/Runs are missing/);
  });

  it("whose database has damaged pages is refused after a kill", async () => {
    await used();
    await start();
    await kill("SIGTERM");
    await start();
    await kill();
    const pages = readFileSync(file());
    // All but the first: the log may have newer ones of some.
    pages.fill(0x55, 4096);
    writeFileSync(file(), pages);
    expect(await refusal()).toMatch(/is damaged/);
  });

  it.each(["threadmill.db", "experiments.db", "lock.db"])("whose %s is not a database is refused", async (name) => {
    writeFileSync(join(folder, name), "no database ".repeat(1_000));
    expect(await refusal()).toMatch(/is damaged .*file is not a database.* delete lock\.db/);
  });

  it("is not opened if Postgres is configured; an unreachable server is reported in one sentence", async () => {
    const databaseUrl = `postgres://user:secret@127.0.0.1:${await freePort()}/x`;
    const answer = startProcess({ data: folder, port: await freePort(), config: CONFIG, databaseUrl });
    const { message } = await answer.then(
      () => expect.fail("It started."),
      (error: Error) => error,
    );
    expect(message).toMatch(
      /^error: Cannot connect to the database \(Postgres, .*ECONNREFUSED.*\)\. Check that the database is running and that --database-url/m,
    );
    expect(message).not.toMatch(/ {4}at |secret/);
  });

  describe.runIf(process.getuid?.() === 0 && process.platform === "linux")("on a disk of its own", () => {
    const onOwnDisk = (test: () => Promise<void>) => async () => {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", folder]);
      try {
        await test();
      } finally {
        await kill();
        execFileSync("umount", [folder]);
      }
    };
    const fill = () => {
      try {
        writeFileSync(join(folder, "filler"), Buffer.alloc(32 * 2 ** 20));
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
      }
    };

    it(
      "that is full: writes are 507 or 503 with a sentence, reads continue, and so does all once there is room",
      onOwnDisk(async () => {
        const { url } = await start();
        const threads = `${url}/threads`;
        const created = (await (await fetch(threads, { method: "POST", body: "{}" })).json()) as { thread_id: string };
        fill();
        const full = async () => {
          const answer = await fetch(threads, {
            method: "POST",
            body: JSON.stringify({ metadata: { x: "x".repeat(50_000) } }),
          });
          if (answer.status === 200) return undefined;
          return { status: answer.status, text: await answer.text() };
        };
        const { status, text } = await until("it is full", full);
        expect([503, 507]).toContain(status);
        expect(text).toMatch(/disk|database/);
        expect(text).not.toMatch(/SQLITE|ENOSPC/);
        expect((await fetch(`${threads}/${created.thread_id}`)).status).toBe(200);
        rmSync(join(folder, "filler"));
        await until("there is room", async () => (await fetch(threads, { method: "POST", body: "{}" })).status === 200);
        expect((await run(server as ServerProcess)).status).toBe(200);
      }),
    );

    it(
      "that is full, or read-only, is named at the start",
      onOwnDisk(async () => {
        fill();
        expect(await refusal()).toMatch(/The disk .* is full/);
        rmSync(join(folder, "filler"));
        execFileSync("mount", ["-o", "remount,ro", folder]);
        expect(await refusal()).toMatch(/is not writable/);
        expect(readdirSync(folder).filter((name) => statSync(join(folder, name)).size > 0)).toEqual([]);
      }),
    );
  });
});
