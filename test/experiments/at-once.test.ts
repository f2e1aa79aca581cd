import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";

const ROUNDS = 10;

describe.each(databases)("two concurrent requests on %s", (database) => {
  let service: TestService;
  let datasets: string[];
  let sessions: string[];
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
    datasets = [];
    sessions = [];
    for (let i = 0; i < 2; i++) {
      datasets.push(await made("/datasets", { name: `dataset ${i}` }));
      sessions.push(await made("/sessions", { name: `session ${i}` }));
    }
  });
  afterAll(() => service.stop());

  const send = (method: string, path: string, body: object) => service.request(method, `/api/v1${path}`, body);
  const made = async (path: string, body: object): Promise<string> => (await send("POST", path, body)).body.id;

  it.each([
    ["the name of a session", (i: number, name: string) => send("PATCH", `/sessions/${sessions[i]}`, { name })],
    ["the name of a dataset", (i: number, name: string) => send("PATCH", `/datasets/${datasets[i]}`, { name })],
    [
      "the id of an example",
      (i: number, id: string) => send("POST", "/examples", { id, dataset_id: datasets[i], inputs: {} }),
    ],
    [
      "the id of a score",
      (i: number, id: string) => send("POST", "/feedback", { id, session_id: sessions[i], key: "k", score: 1 }),
    ],
  ])("%s goes to one of them, and the other gets a conflict", async (_, ask) => {
    for (let round = 0; round < ROUNDS; round++) {
      const wanted = randomUUID();
      const answers = await Promise.all([ask(0, wanted), ask(1, wanted)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    }
  });
});
