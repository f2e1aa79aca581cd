import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { run, type TestRun, TraceClient } from "../traces/trace-client.ts";

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

  it("that share a dataset get the same token", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const share = () => send("PUT", `/datasets/${datasets[0]}/share`, {});
      const [one, other] = await Promise.all([share(), share()]);
      expect(one?.body.share_token).toBe(other?.body.share_token);
      expect((await service.request("DELETE", `/api/v1/datasets/${datasets[0]}/share`)).status).toBeLessThan(300);
    }
  });

  it("that store runs and feedback on them attach all feedback", async () => {
    const client = new TraceClient(service);
    const scored: TestRun[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const runs = Array.from({ length: 50 }, () => run({ session_name: "at once" }));
      let isStored = false;
      const storing = client.post(...runs).then(() => {
        isStored = true;
      });
      for (const { id } of runs) {
        if (isStored) break;
        expect((await send("POST", "/feedback", { run_id: id, key: "k", score: 1 })).status).toBe(200);
        scored.push(runs.find((each) => each.id === id) as TestRun);
      }
      await storing;
    }
    expect((await client.session("at once")).feedback_stats).toMatchObject({ k: { n: scored.length } });
  });
});
