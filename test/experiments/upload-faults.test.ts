import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { COUNTS, SEED } from "../support/counts.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { randomOf } from "../support/random.ts";
import { experimentOf, type Upload } from "./experiment.ts";

const KILLS = Math.ceil(COUNTS.kills / 10);
const ROWS = 500;

describe.each(databases)("an upload on %s", (name) => {
  let database: TestDatabase;
  let port: number;
  let server: ServerProcess;
  beforeEach(async () => {
    database = await createDatabase(name);
    port = await freePort();
    await start();
  });
  afterEach(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    await database.drop();
  });

  async function start(): Promise<void> {
    const options = { data: database.data_dir, databaseUrl: database.url, port, config: "examples/langgraph.json" };
    server = await startProcess(options);
  }

  async function killAndStartAgain(): Promise<void> {
    server.child.kill("SIGKILL");
    await server.ended;
    await start();
  }

  const ask = async (path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: body ? "POST" : "GET",
      headers: { "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
    return { status: response.status, body: (await response.json()) as any };
  };

  /** Begins an upload; what it is sent is up to the caller. */
  function begin(): ClientRequest {
    const headers = { "content-type": "application/json" };
    const sent = request({
      port,
      host: "127.0.0.1",
      method: "POST",
      path: "/api/v1/datasets/upload-experiment",
      headers,
    });
    sent.on("error", () => undefined);
    return sent;
  }

  const scored = (n: number, more: Partial<Upload> = {}) =>
    experimentOf(n, (index) => [{ key: "right", score: index % 2 }], more);

  it("that is killed with half of its body leaves nothing", async () => {
    const body = scored(ROWS);
    const text = JSON.stringify(body);
    const sent = begin();
    await new Promise((resolve) => sent.write(text.slice(0, text.length / 2), resolve));
    // Another one is through, so the server is at work on both.
    expect((await ask("/api/v1/datasets/upload-experiment", scored(5))).status).toBe(200);
    await killAndStartAgain();
    expect((await ask(`/api/v1/sessions?name=${body.experiment_name}`)).body).toEqual([]);
    expect((await ask(`/api/v1/datasets?name=${body.dataset_name}`)).body).toEqual([]);
  });

  it(
    `is stored completely or not at all, whenever the server is killed (seed ${SEED}; CRASH_KILLS and SEED change it)`,
    async () => {
      const random = randomOf(SEED);
      const found: boolean[] = [];
      for (let kill = 0; kill < KILLS; kill++) {
        // The threads are there, so that the kill meets the work and not their beginning.
        await ask("/api/v1/datasets/upload-experiment", scored(1));
        const body = scored(ROWS, { experiment_name: `killed ${kill}`, dataset_name: `killed ${kill}` });
        const sent = begin();
        await new Promise<void>((resolve) => sent.end(JSON.stringify(body), resolve));
        // Requests are the clock: each takes about a millisecond.
        for (let n = random.integer(0, 150); n > 0; n--) await ask("/ok");
        await killAndStartAgain();
        const [session] = (await ask(`/api/v1/sessions?name=killed+${kill}&include_stats=true`)).body;
        const [dataset] = (await ask(`/api/v1/datasets?name=killed+${kill}`)).body;
        found.push(session !== undefined);
        if (!session) expect(dataset).toBeUndefined();
        else {
          expect(session).toMatchObject({ run_count: ROWS, feedback_stats: { right: { n: ROWS, avg: 0.5 } } });
          expect(dataset).toMatchObject({ example_count: ROWS, session_count: 1 });
        }
      }
      console.log(
        `${name}: ${found.filter(Boolean).length} of ${found.length} uploads were stored before the kill, seed ${SEED}`,
      );
    },
    60_000 + KILLS * 20_000,
  );

  it.runIf(name === "sqlite")("whose client is slow delays no run and no other upload", async () => {
    const body = scored(ROWS);
    const text = JSON.stringify(body);
    const sent = begin();
    const answered = once(sent, "response") as Promise<[IncomingMessage]>;
    await new Promise((resolve) => sent.write(text.slice(0, text.length / 2), resolve));

    const run = await ask("/runs/wait", { assistant_id: "echo", input: { text: "meanwhile" } });
    expect(run.status).toBe(200);
    expect((await ask("/api/v1/datasets/upload-experiment", scored(ROWS))).status).toBe(200);
    expect((await ask(`/api/v1/sessions?name=${body.experiment_name}`)).body).toEqual([]);

    sent.end(text.slice(text.length / 2));
    const [response] = await answered;
    expect(response.statusCode).toBe(200);
    expect(await json(response)).toMatchObject({ experiment: { name: body.experiment_name } });
  });

  it("that its client aborts leaves no rows, and its name is free", async () => {
    const body = scored(ROWS);
    const text = JSON.stringify(body);
    const sent = begin();
    await new Promise((resolve) => sent.write(text.slice(0, text.length / 2), resolve));
    sent.destroy();
    const again = await ask("/api/v1/datasets/upload-experiment", body);
    expect(again.status).toBe(200);
  });

  it.runIf(name === "sqlite")("that is too large is refused, whether or not it declares its size", async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    server = await startProcess({
      data: database.data_dir,
      databaseUrl: database.url,
      port,
      config: "examples/langgraph.json",
      env: { THREADMILL_MAX_UPLOAD: "50000" },
    });
    const text = JSON.stringify(scored(ROWS));
    const refused = await ask("/api/v1/datasets/upload-experiment", scored(ROWS));
    expect(refused).toEqual({ status: 413, body: { detail: "The request body is larger than 50000 bytes." } });
    const sent = begin(); // in chunks, without a content-length
    const answered = once(sent, "response") as Promise<[IncomingMessage]>;
    sent.write(text.slice(0, 60_000));
    sent.end(text.slice(60_000));
    const [response] = await answered;
    expect(response.statusCode).toBe(413);
  });
});
