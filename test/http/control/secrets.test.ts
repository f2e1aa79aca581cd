import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { placesOfSecrets } from "../../support/canary.ts";
import { databases } from "../../support/databases.ts";
import { ControlApi, empty, ofImage, type User, type Wire } from "./api.ts";

const RESERVED = ["PATH", "PORT", "POSTGRES_URI", "LANGSMITH_HOST_PROJECT_NAME", "DD_TRACE_X", "LSD_", "REDIS_URI"];

describe.each(databases)("secrets of deployments on %s", (database) => {
  let api: ControlApi;
  let ada: User;
  let admin: User;
  beforeAll(async () => {
    api = await ControlApi.start(database);
    ada = await api.user();
    admin = await api.user(undefined, ["admin"]);
  });
  afterAll(() => api.stop());

  const shown = async (who: User, { id }: Wire) => (await who.call("GET", `/v2/deployments/${id}`)).secrets;

  it("show their names to all callers and their values only to administrators", async () => {
    const secrets = [
      { name: "OPENAI_API_KEY", value: "sk-1" },
      { name: "EMPTY", value: "" },
    ];
    const masked = secrets.map(({ name }) => ({ name, value: "********" }));
    const made = await ada.call("POST", "/v2/deployments", ofImage({ secrets }), 201);
    expect(made.secrets).toEqual(masked);
    expect(await shown(ada, made)).toEqual(masked);
    expect(await shown(admin, made)).toEqual(secrets);
    const { resources } = await ada.call("GET", `/v2/deployments?deployment_ids=${made.id}`);
    expect(resources[0].secrets).toEqual(masked);
    expect((await ada.call("PATCH", `/v2/deployments/${made.id}`, {})).secrets).toEqual(masked);
  });

  it("are replaced together, kept by a PATCH without secrets, and deleted by an empty list", async () => {
    const made = await ada.call("POST", "/v2/deployments", ofImage({ secrets: [{ name: "A", value: "1" }] }), 201);
    const patch = (body: object) => ada.call("PATCH", `/v2/deployments/${made.id}`, body);
    await patch({ source_revision_config: { image_uri: "i:2" } });
    expect(await shown(admin, made)).toEqual([{ name: "A", value: "1" }]);
    await patch({ secrets: [{ name: "B", value: "2" }] });
    expect(await shown(admin, made)).toEqual([{ name: "B", value: "2" }]);
    await patch({ secrets: null });
    expect(await shown(admin, made)).toEqual([{ name: "B", value: "2" }]);
    await patch({ secrets: [] });
    expect(await shown(admin, made)).toEqual([]);
  });

  it("are sealed in the database, in every row that has them", async () => {
    const value = `canary-${randomUUID()}`;
    const made = await ada.call("POST", "/v2/deployments", ofImage({ secrets: [{ name: "CANARY", value }] }), 201);
    await ada.call("POST", `/v2/deployments/${made.id}/revisions`, {}, 201);
    expect(await shown(admin, made)).toEqual([{ name: "CANARY", value }]);
    const { resources } = await ada.call("GET", `/v2/deployments/${made.id}/revisions`);
    const sealed = await Promise.all(resources.map(async ({ id }: Wire) => (await api.row(id)).secrets));
    expect(sealed).toEqual([expect.stringMatching(/^v1\./), expect.stringMatching(/^v1\./)]);
    expect(sealed[0]).not.toBe(sealed[1]);
    expect(await placesOfSecrets(api.service.database, [value])).toEqual([]);
  });

  it.each(RESERVED)("may not be called %s, and the error contains no value", async (name) => {
    const secrets = [
      { name, value: "hunter2" },
      { name: "FINE", value: "hunter3" },
    ];
    const before = await ada.call("POST", "/v2/deployments", empty(), 201);
    for (const [method, path, body] of [
      ["POST", "/v2/deployments", ofImage({ secrets })],
      ["PATCH", `/v2/deployments/${before.id}`, { secrets }],
      ["POST", `/v2/deployments/${before.id}/revisions`, { secrets }],
    ] as const) {
      const answer = await ada.send(method, path, body);
      expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(`${name}.`)]);
      expect(answer.text).not.toContain("hunter");
      expect(answer.text).not.toContain("FINE");
    }
    expect(await ada.call("GET", `/v2/deployments/${before.id}`)).toEqual(before);
  });

  it.each([
    ["a space", [{ name: "A B", value: "v" }], "A B"],
    ["an equals sign", [{ name: "A=B", value: "v" }], "A=B"],
    ["a digit first", [{ name: "1A", value: "v" }], "1A"],
    [
      "a name twice",
      [
        { name: "A", value: "v" },
        { name: "A", value: "w" },
      ],
      "only once. Duplicates: A",
    ],
  ])("may not have %s", async (_, secrets, part) => {
    const answer = await ada.send("POST", "/v2/deployments", ofImage({ secrets }));
    expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(part)]);
  });

  it.each<[string, object]>([
    ["a field that is missing", { source: undefined }],
    ["a value that is no text", { secrets: [{ name: "A", value: ["hunter2"] }] }],
    ["a secret without its name", { secrets: [{ value: "hunter2" }] }],
    ["secrets that are no list", { secrets: { A: "hunter2" } }],
    ["a text instead of secrets", { secrets: "hunter2" }],
  ])("are not returned to a sender with %s", async (_, wrong) => {
    const body = ofImage({ secrets: [{ name: "A", value: "hunter2" }], ...wrong });
    const answer = await ada.send("POST", "/v2/deployments", body);
    expect(answer.status).toBe(422);
    expect(answer.text).not.toContain("hunter2");
  });

  it("that cannot be decrypted prevent a new revision until they are replaced", async () => {
    const made = await ada.call("POST", "/v2/deployments", ofImage({ secrets: [{ name: "A", value: "1" }] }), 201);
    const other = await ada.call("POST", "/v2/deployments", ofImage({ secrets: [{ name: "A", value: "2" }] }), 201);
    const secretsOf = ({ id }: Wire) =>
      api.storage.read.k.selectFrom("deployments").select("secrets").where("deployment_id", "=", id);
    // The secrets of one deployment are put into the place of another's.
    const stolen = await api.storage.read.first(secretsOf(other));
    await api.storage.write((tx) =>
      tx.run(
        tx.k
          .updateTable("deployments")
          .set({ secrets: stolen?.secrets ?? "" })
          .where("deployment_id", "=", made.id),
      ),
    );
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["PATCH", "", { source_revision_config: { image_uri: "i:2" } }],
      ["POST", "/revisions", {}],
    ] as const) {
      const answer = await admin.send(method, `/v2/deployments/${made.id}${path}`, body);
      expect([answer.status, answer.body]).toEqual([
        500,
        { detail: expect.stringContaining("See the server's log for details") },
      ]);
    }
    expect((await ada.call("GET", `/v2/deployments/${made.id}/revisions`)).resources).toHaveLength(1);
    await ada.call("PATCH", `/v2/deployments/${made.id}`, { secrets: [{ name: "A", value: "3" }] });
    expect(await shown(admin, made)).toEqual([{ name: "A", value: "3" }]);
  });
});
