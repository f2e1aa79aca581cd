import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../../support/databases.ts";
import { UNKNOWN_ID } from "../scenario.ts";
import { ControlApi, ISO, type User, UUID, type Wire } from "./api.ts";

const listener = (compute_id: string, more: object = {}) => ({
  compute_type: "k8s",
  compute_id,
  compute_config: { k8s_namespaces: ["default"] },
  ...more,
});

describe.each(databases)("listeners on %s", (database) => {
  let api: ControlApi;
  let ada: User;
  let elsewhere: User;
  beforeAll(async () => {
    api = await ControlApi.start(database);
    ada = await api.user();
    elsewhere = await api.user(await api.newWorkspace("elsewhere"));
  });
  afterAll(() => api.stop());

  const create = (body: object, who = ada): Promise<Wire> => who.call("POST", "/v2/listeners", body, 201);

  it("are stored with all fields", async () => {
    const made = await create(listener("one", { version: "1.2.3", unknown: 1 }));
    expect(made).toEqual({
      id: expect.stringMatching(UUID),
      version: "1.2.3",
      compute_type: "k8s",
      compute_id: "one",
      compute_config: { k8s_namespaces: ["default"] },
      created_at: expect.stringMatching(ISO),
      updated_at: expect.stringMatching(ISO),
    });
    expect(await ada.call("GET", `/v2/listeners/${made.id}`)).toEqual(made);
    const plain = await create(listener("plain", { compute_config: {} }));
    expect(plain).toMatchObject({ version: null, compute_config: { k8s_namespaces: null } });
  });

  it("have a compute id that is unique in a workspace", async () => {
    await create(listener("twice"));
    const again = await ada.send("POST", "/v2/listeners", listener("twice"));
    const detail = `Listener for LangSmith workspace ID '${ada.tenant_id}' and compute ID 'twice' already exists.`;
    expect([again.status, again.body]).toEqual([409, { detail }]);
    await create(listener("twice"), elsewhere);
  });

  it("change the fields of a PATCH, and are deleted", async () => {
    const made = await create(listener("patched"));
    const patch = (body: object) => ada.call("PATCH", `/v2/listeners/${made.id}`, body);
    expect(await patch({ version: "2", compute_config: null })).toMatchObject({
      version: "2",
      compute_config: made.compute_config,
    });
    const compute_config = { k8s_namespaces: [] };
    expect(await patch({ compute_config, compute_id: "other" })).toMatchObject({
      version: "2",
      compute_config,
      compute_id: "patched",
    });
    const deleted = await ada.send("DELETE", `/v2/listeners/${made.id}`);
    expect([deleted.status, deleted.text]).toEqual([204, ""]);
    expect((await ada.send("DELETE", `/v2/listeners/${made.id}`)).status).toBe(404);
  });

  it("are listed in pages, the newest first, and not to another workspace", async () => {
    const who = await api.user(await api.newWorkspace("pages"));
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await create(listener(`c${i}`), who)).id);
    const page = await who.call("GET", "/v2/listeners?limit=2&offset=1");
    expect([page.resources.map(({ id }: Wire) => id), page.offset]).toEqual([ids.slice(1), 3]);
    for (const id of [UNKNOWN_ID, ids[0]])
      for (const [method, body] of [
        ["GET", undefined],
        ["PATCH", {}],
        ["DELETE", undefined],
      ] as const) {
        const answer = await ada.send(method, `/v2/listeners/${id}`, body);
        expect([answer.status, answer.body]).toEqual([404, { detail: `Listener ID ${id} not found.` }]);
      }
    expect((await who.call("GET", "/v2/listeners")).resources).toHaveLength(3);
  });

  it.each([
    "/v1/integrations/github/install",
    `/v1/integrations/github/${UNKNOWN_ID}/repos`,
    "/v1/integrations/forge/github/install",
    `/v1/integrations/forge/github/${UNKNOWN_ID}/repos`,
  ])("and integrations: %s lists nothing", async (path) => {
    for (const mount of ["", "/api-host"]) expect(await ada.call("GET", `${mount}${path}`)).toEqual([]);
  });
});
