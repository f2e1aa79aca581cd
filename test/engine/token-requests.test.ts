import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerTokenRequest, type FindToken } from "../../src/agent-server/engine/execution/host-requests.ts";
import { findRun } from "../../src/agent-server/storage/runs.ts";
import type { RunRow } from "../../src/agent-server/storage/schema.ts";
import { DEFAULT_TENANT, SCOPES } from "../../src/platform/contract/caller.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { ApiError } from "../../src/platform/errors.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";

const WISH = { op: "token", provider: "acme", scopes: [], agent_scoped: true } as const;
const request = { ...WISH, scopes: [...WISH.scopes] };

describe.each(databases)("a run's request for a token on %s", (name) => {
  let service: TestService;
  let database: Database;
  beforeAll(async () => {
    service = await startService({ database: name, config: "test/graphs/tokens/langgraph.json" });
    database = openOn(service.database);
  });
  afterAll(async () => {
    await database.close();
    await service.stop();
  });

  /** A run that is running, as its executor knows it. */
  async function newRun(): Promise<RunRow> {
    const { thread_id } = (await service.request("POST", "/threads", {})).body;
    const { body } = await service.request("POST", `/threads/${thread_id}/runs`, { assistant_id: "waits", input: {} });
    const row = async () => findRun(database.read, { tenant_id: DEFAULT_TENANT, run_id: body.run_id });
    await until("the run is running", async () => (await row())?.status === "running");
    return (await row()) as RunRow;
  }
  const cancel = ({ thread_id, run_id }: RunRow) =>
    service.request("POST", `/threads/${thread_id}/runs/${run_id}/cancel?wait=1`);
  const ask = (run: RunRow, findToken: FindToken, timeout_ms?: number) =>
    answerTokenRequest(run, request, { database, findToken, log: createLog("silent") }, timeout_ms);

  it("is made for the user, the workspace and the assistant in the run's record", async () => {
    const run = await newRun();
    const asked: unknown[] = [];
    const answer = await ask(run, async (...question) => {
      asked.push(question);
      return { token: "t" };
    });
    const { tenant_id, assistant_id } = run;
    expect(answer).toEqual({ token: "t" });
    expect(asked).toEqual([[{ tenant_id, assistant_id, user_id: "local", scopes: [...SCOPES] }, request]]);
    await cancel(run);
  });

  it("is refused at another epoch, and for a run with a cancel request, before the provider is called", async () => {
    const run = await newRun();
    const never: FindToken = () => expect.unreachable();
    await expect(ask({ ...run, epoch: run.epoch - 1 }, never)).rejects.toThrow(
      "another process has taken over the run",
    );
    await cancel(run);
    await expect(ask(run, never)).rejects.toThrow("another process has taken over the run");
  });

  it("has no answer when the run is stopped during the request", async () => {
    const run = await newRun();
    const findToken: FindToken = async () => {
      await cancel(run);
      return { token: "too late" };
    };
    await expect(ask(run, findToken)).rejects.toThrow("another process has taken over the run");
  });

  it("ends after its time limit, even without an answer", async () => {
    const run = await newRun();
    const hangs: FindToken = () => new Promise(() => undefined);
    await expect(ask(run, hangs, 20)).rejects.toThrow("The request for an OAuth token timed out after 20 ms.");
    await cancel(run);
  });

  it("fails with an error message for callers, without details of the thrown error", async () => {
    const run = await newRun();
    const fails = (error: Error) => ask(run, () => Promise.reject(error));
    const known = new ApiError("oauth_provider_not_found", { provider_id: "acme" });
    await expect(fails(known)).rejects.toThrow("OAuth provider 'acme' not found");
    await expect(fails(new Error("the key 4711 does not open it"))).rejects.toThrow(
      "Internal server error. See the server's log for details.",
    );
    await cancel(run);
  });
});
