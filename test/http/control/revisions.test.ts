import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IN_PROGRESS } from "../../../src/control-plane/storage/revisions.ts";
import { databases } from "../../support/databases.ts";
import { UNKNOWN_ID } from "../scenario.ts";
import { ControlApi, ISO, ofImage, ofRepository, REVISION_FIELDS, type User, UUID, type Wire } from "./api.ts";

const ENDS = ["CREATE_FAILED", "BUILD_FAILED", "DEPLOY_FAILED", "DEPLOYED", "SKIPPED", "INTERRUPTED"] as const;

describe.each(databases)("revisions on %s", (database) => {
  let api: ControlApi;
  let ada: User;
  beforeAll(async () => {
    api = await ControlApi.start(database);
    ada = await api.user();
  });
  afterAll(() => api.stop());

  const create = (body: object): Promise<Wire> => ada.call("POST", "/v2/deployments", body, 201);
  const add = ({ id }: Wire, body: object = {}): Promise<Wire> =>
    ada.call("POST", `/v2/deployments/${id}/revisions`, body, 201);
  const ask = ({ id }: Wire, revision_id: string, verb: string) =>
    ada.send("POST", `/v2/deployments/${id}/revisions/${revision_id}/${verb}`);
  const list = ({ id }: Wire, query = "") => ada.call("GET", `/v2/deployments/${id}/revisions${query}`);
  const statuses = async (of: Wire) => (await list(of)).resources.map(({ status }: Wire) => status);
  const nextCheckAt = async ({ id }: Wire) => {
    const { read } = api.storage;
    const row = await read.first(read.k.selectFrom("deployments").select("look_at").where("deployment_id", "=", id));
    return row?.look_at as number;
  };
  const neverLook = ({ id }: Wire) =>
    api.storage.write((tx) =>
      tx.run(tx.k.updateTable("deployments").set({ look_at: 9e15 }).where("deployment_id", "=", id)),
    );

  it("have all fields, and nothing else", async () => {
    const made = await create(ofRepository());
    const revision = await ada.call("GET", `/v2/deployments/${made.id}/revisions/${made.latest_revision_id}`);
    expect(Object.keys(revision)).toEqual(REVISION_FIELDS);
    expect(revision).toEqual({
      id: made.latest_revision_id,
      status: "CREATING",
      status_message: null,
      source: "github",
      source_revision_config: made.source_revision_config,
      can_redeploy: false,
      created_at: expect.stringMatching(ISO),
      updated_at: expect.stringMatching(ISO),
    });
    await api.become(revision.id, "BUILD_FAILED", { status_message: "npm ended with 1." });
    expect((await list(made)).resources).toMatchObject([
      { status: "BUILD_FAILED", status_message: "npm ended with 1." },
    ]);
  });

  it("are created on request even if nothing has changed, and wake the reconciler", async () => {
    const made = await create(ofImage());
    await api.become(made.latest_revision_id, "DEPLOYED");
    await neverLook(made);
    const revision = await add(made);
    expect(Object.keys(revision)).toEqual(REVISION_FIELDS);
    expect(revision).toMatchObject({ id: expect.stringMatching(UUID), status: "CREATING", source: "external_docker" });
    expect(revision.id).not.toBe(made.latest_revision_id);
    expect(await ada.call("GET", `/v2/deployments/${made.id}`)).toMatchObject({ latest_revision_id: revision.id });
    expect(await nextCheckAt(made)).toBeLessThanOrEqual(Date.now() + 1000);
  });

  it.each(IN_PROGRESS)("wait while another is %s; the newest of those that wait stays", async (status) => {
    const made = await create(ofImage());
    await api.become(made.latest_revision_id, status);
    await add(made);
    await add(made);
    const first = status === "QUEUED" ? "SKIPPED" : status;
    expect(await statuses(made)).toEqual(["QUEUED", "SKIPPED", first]);
    const [, skipped] = (await list(made)).resources;
    expect(skipped.status_message).toContain("newer");
  });

  it.each(ENDS)("begin at once after one that is %s", async (status) => {
    const made = await create(ofImage());
    await api.become(made.latest_revision_id, status);
    expect((await add(made)).status).toBe("CREATING");
  });

  it("are listed in pages and by status, the newest first", async () => {
    const made = await create(ofImage());
    const ids = [made.latest_revision_id];
    for (let i = 0; i < 3; i++) ids.unshift((await add(made)).id);
    const page = await list(made, "?limit=3&offset=1");
    expect([page.resources.map(({ id }: Wire) => id), page.offset]).toEqual([ids.slice(1), 4]);
    expect((await list(made, "?limit=1")).resources).toMatchObject([{ id: ids[0] }]);
    const found = async (status: string) => (await list(made, `?status=${status}`)).resources.map(({ id }: Wire) => id);
    expect(await found("QUEUED")).toEqual([ids[0]]);
    expect(await found("QUEUED,%20CREATING")).toEqual([ids[0], ids[3]]);
    expect(await found("NOTHING")).toEqual([]);
    expect(await found("")).toHaveLength(4);
  });

  it("that have served are deployed again as they were built", async () => {
    const made = await create(ofImage());
    const first = made.latest_revision_id;
    await api.become(first, "DEPLOYED", { artifact: "a1", status_message: "old" });
    const second = await add(made);
    await api.become(second.id, "DEPLOYED", { artifact: "a2" });
    await neverLook(made);
    const answer = await ask(made, first, "redeploy");
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ id: made.id, latest_revision_id: second.id });
    expect(await statuses(made)).toEqual(["DEPLOYED", "AWAITING_DEPLOY"]);
    expect(await api.row(first)).toMatchObject({ artifact: "a1", status_message: null });
    expect(await nextCheckAt(made)).toBeLessThanOrEqual(Date.now() + 1000);
    // It fails, and is tried once more: it has served before.
    await api.become(first, "DEPLOY_FAILED");
    expect((await list(made)).resources.at(-1)).toMatchObject({ id: first, can_redeploy: true });
    expect((await ask(made, first, "redeploy")).status).toBe(200);
    await api.become(first, "DEPLOY_FAILED", { artifact: null });
    expect((await ask(made, first, "redeploy")).body.detail).toContain("its build was removed");
  });

  it.each(ENDS)("that are %s and have not served, or are not kept, are not deployed again", async (status) => {
    const made = await create(ofImage());
    await api.become(made.latest_revision_id, status, { artifact: status === "DEPLOYED" ? null : "a" });
    const answer = await ask(made, made.latest_revision_id, "redeploy");
    const reason = status === "DEPLOYED" ? "its build was removed" : `its status is ${status}`;
    expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(reason)]);
    expect(await statuses(made)).toEqual([status]);
    expect((await list(made)).resources).toMatchObject([{ can_redeploy: false }]);
  });

  it.each(IN_PROGRESS)("are not deployed again while one is %s", async (status) => {
    const made = await create(ofImage());
    await api.become(made.latest_revision_id, "DEPLOYED", { artifact: "a" });
    await api.become((await add(made)).id, status);
    for (const { id } of (await list(made)).resources) {
      const answer = await ask(made, id, "redeploy");
      expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining("in progress")]);
    }
    expect(await statuses(made)).toEqual([status, "DEPLOYED"]);
  });

  it("are deployed again only once when ten requests arrive at the same time", async () => {
    const made = await create(ofImage());
    await api.become(made.latest_revision_id, "DEPLOYED", { artifact: "a" });
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(made, made.latest_revision_id, "redeploy")));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(400)]);
  });

  it.each(IN_PROGRESS)(
    "that are %s record the request to interrupt them, and change only when a reconciler applies it",
    async (status) => {
      for (const verb of ["interrupt", "interruption"]) {
        const made = await create(ofImage());
        await api.become(made.latest_revision_id, status);
        await neverLook(made);
        const answer = await ask(made, made.latest_revision_id, verb);
        expect([answer.status, answer.body]).toEqual([
          200,
          expect.objectContaining({ id: made.latest_revision_id, status }),
        ]);
        expect(Object.keys(answer.body)).toEqual(REVISION_FIELDS);
        expect((await api.row(made.latest_revision_id)).interrupt_asked).toBe(1);
        expect(await nextCheckAt(made)).toBeLessThanOrEqual(Date.now() + 1000);
      }
    },
  );

  it.each(ENDS)("that are %s have nothing to interrupt", async (status) => {
    const made = await create(ofImage());
    await api.become(made.latest_revision_id, status);
    const answer = await ask(made, made.latest_revision_id, "interrupt");
    expect([answer.status, answer.body.detail]).toEqual([
      400,
      expect.stringContaining(`finished with status ${status}`),
    ]);
    expect((await api.row(made.latest_revision_id)).interrupt_asked).toBe(0);
  });

  it("that do not exist or belong to another deployment are not found", async () => {
    const [made, other] = [await create(ofImage()), await create(ofImage())];
    for (const id of [UNKNOWN_ID, other.latest_revision_id])
      for (const [method, path, body] of [
        ["GET", `/v2/deployments/${made.id}/revisions/${id}`, undefined],
        ["POST", `/v2/deployments/${made.id}/revisions/${id}/redeploy`, undefined],
        ["POST", `/v2/deployments/${made.id}/revisions/${id}/interrupt`, undefined],
        ["GET", `/v2/deployments/${made.id}/revisions/${id}/logs?type=deploy`, undefined],
        ["GET", `/v2/deployment-logs?deployment_id=${made.id}&revision_id=${id}`, undefined],
        ["POST", `/v1/projects/${made.id}/revisions/${id}/build_logs`, {}],
        ["POST", `/v1/projects/${made.id}/revisions/${id}/deploy_logs`, {}],
      ] as const) {
        const answer = await ada.send(method, path, body);
        expect([path, answer.status, answer.body]).toEqual([path, 404, { detail: `Revision ID ${id} not found.` }]);
      }
  });
});
