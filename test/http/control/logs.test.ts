import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deleteExpiredData, MAX_LOG_LINES } from "../../../src/control-plane/cleanup/garbage-collection.ts";
import { insertLogLines, type NewLogLine } from "../../../src/control-plane/storage/logs.ts";
import { Uploads } from "../../../src/control-plane/uploads.ts";
import { databases } from "../../support/databases.ts";
import { ControlApi, ofImage, type User, type Wire } from "./api.ts";

const START = Date.UTC(2026, 0, 31, 12);
const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];
const messages = (lines: Wire[]) => lines.map(({ message }) => message);

describe.each(databases)("the logs of a deployment on %s", (database) => {
  let api: ControlApi;
  let ada: User;
  let made: Wire;
  let revision: string;
  beforeAll(async () => {
    api = await ControlApi.start(database);
    ada = await api.user();
    made = await ada.call("POST", "/v2/deployments", ofImage(), 201);
    revision = made.latest_revision_id;
    const second = (await ada.call("POST", `/v2/deployments/${made.id}/revisions`, {}, 201)).id;
    await write(
      LEVELS.map((level, i) => ({ level, message: `Build ${i}`, at: START + i, kind: "build" })),
      Array.from({ length: 10 }, (_, i) => ({ message: `deploy ${i}`, at: START + 1000 * Math.floor(i / 2) })),
      [{ message: "of the second", at: START + 9000, revision_id: second, run_id: "run-1", level: "ERROR" }],
    );
    const other = await ada.call("POST", "/v2/deployments", ofImage(), 201);
    await write([{ message: "of another", at: START, deployment_id: other.id }]);
  });
  afterAll(() => api.stop());

  const write = (...lines: Partial<NewLogLine>[][]) =>
    api.storage.write((tx) =>
      insertLogLines(
        tx,
        lines.flat().map((line) => ({
          deployment_id: made.id,
          revision_id: revision,
          tenant_id: made.tenant_id,
          kind: "deploy",
          level: "INFO",
          message: "",
          run_id: null,
          at: START,
          ...line,
        })),
      ),
    );

  const ofRevision = (query: string) =>
    ada.call("GET", `/v2/deployments/${made.id}/revisions/${revision}/logs?${query}`);
  const ofAll = (query = "") => ada.call("GET", `/v2/deployments/${made.id}/logs?${query}`);
  const flat = (query = "") => ada.call("GET", `/v2/deployment-logs?deployment_id=${made.id}&${query}`);
  const post = (what: string, body: object = {}) => ada.call("POST", `/v1/projects/${made.id}/${what}`, body);

  it("have a stable id, a time, a level and a message for each line", async () => {
    const { logs, next_offset } = await ofRevision("type=build");
    expect(next_offset).toBeNull();
    expect(logs).toEqual(
      LEVELS.map((level, i) => ({
        id: expect.stringMatching(/^\d+$/),
        timestamp: `2026-01-31T12:00:00.00${i}+00:00`,
        level,
        message: `Build ${i}`,
        revision_id: revision,
        run_id: null,
      })),
    );
    expect((await ofRevision("type=build")).logs).toEqual(logs);
    expect((await post(`revisions/${revision}/build_logs`)).logs).toEqual(logs);
    expect((await flat("log_type=BUILD")).items).toEqual(logs);
    expect((await ofAll("type=build")).logs).toEqual(logs);
  });

  it("separate builds from instances, and revisions from each other", async () => {
    const ten = Array.from({ length: 10 }, (_, i) => `deploy ${i}`);
    expect(messages((await ofRevision("type=deploy")).logs)).toEqual(ten);
    expect(messages((await ofAll()).logs)).toEqual([...ten, "of the second"]);
    expect(messages((await flat()).items)).toEqual([...ten, "of the second"]);
    expect(messages((await flat(`revision_id=${revision}`)).items)).toEqual(ten);
    expect(messages((await post("deploy_logs")).logs)).toEqual([...ten, "of the second"]);
    expect(messages((await post(`revisions/${revision}/deploy_logs`)).logs)).toEqual(ten);
  });

  it.each(["asc", "desc"])("are read page by page, %s, without a gap and without a line twice", async (order) => {
    const all = (await ofAll(`order=${order}`)).logs;
    expect(all).toHaveLength(11);
    expect(messages(all)[0]).toBe(order === "asc" ? "deploy 0" : "of the second");
    const read = async (page: (cursor: string) => Promise<[Wire[], string | null]>) => {
      const seen: Wire[] = [];
      for (let cursor = ""; ; ) {
        const [lines, next] = await page(cursor);
        seen.push(...lines);
        if (next === null) return seen;
        expect(lines).toHaveLength(3);
        cursor = next;
      }
    };
    const beyond = (name: string, cursor: string) => (cursor ? `&${name}=${encodeURIComponent(cursor)}` : "");
    expect(
      await read(async (cursor) => {
        const { logs, next_offset } = await ofAll(`order=${order}&limit=3${beyond("offset", cursor)}`);
        return [logs, next_offset];
      }),
    ).toEqual(all);
    expect(
      await read(async (cursor) => {
        const { items, next_cursor } = await flat(`sort_order=${order}&page_size=3${beyond("cursor", cursor)}`);
        return [items, next_cursor];
      }),
    ).toEqual(all);
    expect(
      await read(async (cursor) => {
        const { logs, next_offset } = await post("deploy_logs", { order, limit: 3, ...(cursor && { offset: cursor }) });
        return [logs, next_offset];
      }),
    ).toEqual(all);
  });

  it("are found by level: that level and higher ones", async () => {
    for (const [i, level] of LEVELS.entries())
      expect(messages((await ofRevision(`type=build&level=${level}`)).logs)).toEqual(
        LEVELS.slice(i).map((_, j) => `Build ${i + j}`),
      );
    expect(messages((await post("deploy_logs", { level: "ERROR" })).logs)).toEqual(["of the second"]);
  });

  it("are found by their text, their run, and their time, both ends of which are included", async () => {
    expect(messages((await ofRevision("type=build&query=build%203")).logs)).toEqual(["Build 3"]);
    expect(messages((await ofAll("query=%25")).logs)).toEqual([]);
    expect(messages((await ofAll("run_id=run-1")).logs)).toEqual(["of the second"]);
    const [from, to] = [START + 1000, START + 2000];
    const expected = ["deploy 2", "deploy 3", "deploy 4", "deploy 5"];
    for (const [start_time, end_time] of [
      [new Date(from).toISOString(), new Date(to).toISOString()],
      ["2026-01-31T12:00:01+00:00", "2026-01-31T13:00:02+01:00"],
      [String(from), String(to)],
      [String(from / 1000), String(to / 1000)],
    ]) {
      const times = new URLSearchParams({ start_time: start_time as string, end_time: end_time as string });
      expect(messages((await ofAll(String(times))).logs)).toEqual(expected);
      expect(messages((await flat(String(times))).items)).toEqual(expected);
      expect(messages((await post("deploy_logs", { start_time, end_time })).logs)).toEqual(expected);
    }
    expect(messages((await post("deploy_logs", { start_time: from, end_time: to })).logs)).toEqual(expected);
  });

  it("give a client that follows a build a cursor for the next lines, even on the last page so far", async () => {
    const follow = (body: object) => post(`revisions/${revision}/build_logs`, { order: "asc", limit: 50, ...body });
    const first = await follow({});
    expect(first.logs).toHaveLength(5);
    expect(first.next_offset).toEqual(expect.any(String));
    const nothing = await follow({ offset: first.next_offset });
    expect(nothing).toEqual({ logs: [], next_offset: first.next_offset });
    await write([{ kind: "build", message: "Build 5", at: START + 5 }]);
    const second = await follow({ offset: first.next_offset });
    expect(messages(second.logs)).toEqual(["Build 5"]);
    await api.become(revision, "DEPLOYED");
    expect((await follow({ offset: first.next_offset })).next_offset).toBeNull();
    expect(await follow({ offset: second.next_offset })).toEqual({ logs: [], next_offset: null });
  });

  it.each(["x", "1", "1-", "-1-1", "1-1-1", "9".repeat(30), "1-9999999999999999"])(
    "have no page after %j",
    async (cursor) => {
      for (const path of [
        `${made.id}/logs?offset=${cursor}`,
        `${made.id}/revisions/${revision}/logs?type=build&offset=${cursor}`,
      ]) {
        const answer = await ada.send("GET", `/v2/deployments/${path}`);
        expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining("cursor")]);
      }
      expect((await ada.send("GET", `/v2/deployment-logs?deployment_id=${made.id}&cursor=${cursor}`)).status).toBe(400);
      expect((await ada.send("POST", `/v1/projects/${made.id}/deploy_logs`, { offset: cursor })).status).toBe(400);
    },
  );

  it("keep a limited number of lines, for a limited time", async () => {
    const one = await ada.call("POST", "/v2/deployments", ofImage(), 201);
    const now = Date.now();
    const line = (at: number, message: string) => ({ at, message, deployment_id: one.id });
    await write(
      [line(now - 60_000, "old")],
      Array.from({ length: MAX_LOG_LINES + 20 }, (_, i) => line(now, String(i))),
    );
    const { data_dir } = api.service.config;
    const uploads = new Uploads({ database: api.storage, folder: `${data_dir}/u`, limit_bytes: 1, ttl_ms: 1 });
    const tidy = (deployment_log_retention_ms: number) =>
      deleteExpiredData({ database: api.storage, uploads, settings: { deployment_log_retention_ms } });
    const ends = async () => {
      const [oldest] = (await ada.call("GET", `/v2/deployments/${one.id}/logs?limit=1`)).logs;
      const [newest] = (await ada.call("GET", `/v2/deployments/${one.id}/logs?limit=1&order=desc`)).logs;
      return [oldest?.message, newest?.message];
    };
    await tidy(100 * 365 * 86_400_000);
    expect(await ends()).toEqual(["20", String(MAX_LOG_LINES + 19)]);
    expect((await ofAll()).logs).toHaveLength(11);
    await write([line(now - 60_000, "old")]);
    await tidy(30_000);
    expect(await ends()).toEqual(["20", String(MAX_LOG_LINES + 19)]);
    expect((await ofAll()).logs).toHaveLength(0);
  }, 60_000);
});
