import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../../support/databases.ts";
import { ControlApi, empty, ofImage, ofRepository, type User, type Wire } from "./api.ts";

describe.each(databases)("a PATCH of a deployment on %s", (database) => {
  let api: ControlApi;
  let ada: User;
  beforeAll(async () => {
    api = await ControlApi.start(database);
    ada = await api.user();
  });
  afterAll(() => api.stop());

  const create = (body: object): Promise<Wire> => ada.call("POST", "/v2/deployments", body, 201);
  const patch = ({ id }: Wire, body: object) => ada.call("PATCH", `/v2/deployments/${id}`, body);
  const revisions = async ({ id }: Wire) => (await ada.call("GET", `/v2/deployments/${id}/revisions`)).resources;

  it.each<[string, object]>([
    ["secrets", { secrets: [{ name: "A", value: "b" }] }],
    ["no secrets at all", { secrets: [] }],
    ["references to secrets", { secret_references: [{ name: "A", secret_name: "b", secret_key: "c" }] }],
    ["resources", { source_config: { resource_spec: { cpu: 1 } } }],
    ["resources of which nothing is said", { source_config: { resource_spec: {} } }],
    ["an image", { source_revision_config: { image_uri: "registry.example.com/agent:2" } }],
    ["the same image", { source_revision_config: { image_uri: "registry.example.com/agent:1" } }],
  ])("makes a revision of %s", async (_, body) => {
    const before = await create(ofImage());
    const after = await patch(before, body);
    expect(after.latest_revision_id).not.toBe(before.latest_revision_id);
    const all = await revisions(after);
    expect(all.map(({ id }: Wire) => id)).toEqual([after.latest_revision_id, before.latest_revision_id]);
    expect(all[0].source_revision_config).toEqual({
      ...before.source_revision_config,
      ...(body as Wire).source_revision_config,
    });
  });

  it.each<[string, object]>([
    ["nothing", {}],
    ["a lot of nothing", { secrets: null, source_config: null, source_revision_config: null, revision_source: null }],
    ["fields that are null", { source_config: { resource_spec: null }, source_revision_config: { image_uri: null } }],
    ["fields that nothing knows", { tracked_packages: [{ name: "langgraph", version: "1" }], source_config: { x: 1 } }],
    ["metadata", { source_config: { build_on_push: false, install_command: "npm i", build_command: "npm run b" } }],
    ["what cannot change, unchanged", { source_config: { deployment_type: null, repo_url: null } }],
  ])("makes no revision of %s", async (_, body) => {
    const before = await create(ofImage());
    const after = await patch(before, body);
    const given = ((body as Wire).source_config ?? {}) as Wire;
    const { build_on_push = null, install_command = null, build_command = null } = given;
    expect(after).toEqual({
      ...before,
      source_config: { ...before.source_config, build_on_push, install_command, build_command },
      updated_at: after.updated_at,
    });
    expect(await revisions(after)).toHaveLength(1);
  });

  it.each<[string, unknown]>([
    ["integration_id", "00000000-0000-4000-8000-000000000001"],
    ["repo_url", "https://git.example.com/other.git"],
    ["deployment_type", "prod"],
    ["listener_id", "00000000-0000-4000-8000-000000000001"],
    ["listener_config", { k8s_namespace: "n" }],
  ])("refuses another %s", async (field, value) => {
    const before = await create(ofRepository());
    const body = { secrets: [], source_config: { [field]: value, install_command: "npm i" } };
    const answer = await ada.send("PATCH", `/v2/deployments/${before.id}`, body);
    expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(`: ${field}.`)]);
    expect(await ada.call("GET", `/v2/deployments/${before.id}`)).toEqual(before);
    const { source_config } = before;
    const same = { ...source_config, custom_url: undefined, resource_spec: undefined };
    expect((await patch(before, { source_config: same })).latest_revision_id).toBe(before.latest_revision_id);
  });

  it("removes a command when it is empty, and replaces all resources when there are new ones", async () => {
    const commands = { install_command: "npm i", build_command: "npm run b" };
    const before = await create(
      ofRepository({ source_config: { repo_url: "https://h/r", ...commands, resource_spec: { cpu: 1 } } }),
    );
    expect((await patch(before, { source_config: { install_command: "" } })).source_config).toMatchObject({
      install_command: null,
      build_command: "npm run b",
      resource_spec: { cpu: 1, cpu_limit: 2 },
    });
    const { source_config } = await patch(before, { source_config: { resource_spec: { memory_mb: 5 } } });
    expect(source_config.resource_spec).toEqual({
      memory_mb: 5,
      memory_limit_mb: 10,
      queue_memory_mb: 5,
      queue_memory_limit_mb: 10,
    });
  });

  it("changes the given fields of the source, and keeps the others of the previous revision", async () => {
    const before = await create(ofRepository());
    const after = await patch(before, { source_revision_config: { repo_ref: "refs/tags/v1", image_uri: "ignored:1" } });
    expect(after.source_revision_config).toEqual({ ...before.source_revision_config, repo_ref: "refs/tags/v1" });
    const wrong = await ada.send("PATCH", `/v2/deployments/${after.id}`, { source_config: { build_on_push: true } });
    expect([wrong.status, wrong.body.detail]).toEqual([400, expect.stringContaining("build_on_push")]);
  });

  it("keeps secrets for the first source of a deployment that has none yet", async () => {
    const admin = await api.user(undefined, ["admin"]);
    const before = await create(empty({ secrets: [{ name: "A", value: "1" }] }));
    const secrets = [{ name: "B", value: "2" }];
    const after = await admin.call("PATCH", `/v2/deployments/${before.id}`, { secrets });
    expect(after).toMatchObject({ secrets, latest_revision_id: null });
    const wrong = await ada.send("PATCH", `/v2/deployments/${before.id}`, {
      source_revision_config: { langgraph_config_path: "langgraph.json" },
    });
    expect([wrong.status, wrong.body.detail]).toEqual([
      400,
      expect.stringContaining("source_tarball_path is required"),
    ]);
    const forced = await ada.send("POST", `/v2/deployments/${before.id}/revisions`, {});
    expect([forced.status, forced.body.detail]).toEqual([
      400,
      expect.stringContaining("source_tarball_path is required"),
    ]);
  });

  it("may change the source of a revision, which the next one then has too", async () => {
    const made = await create(empty());
    const image = { revision_source: "internal_docker", source_revision_config: { image_uri: "registry/a@sha256:00" } };
    const after = await patch(made, image);
    expect(after).toMatchObject({ source: "internal_source", source_revision_config: image.source_revision_config });
    await patch(made, { secrets: [] });
    expect((await revisions(made)).map(({ source }: Wire) => source)).toEqual(["internal_docker", "internal_docker"]);
    const back = await ada.send("PATCH", `/v2/deployments/${made.id}`, {
      revision_source: "internal_source",
      secrets: [],
    });
    expect([back.status, back.body.detail]).toEqual([400, expect.stringContaining("source_tarball_path is required")]);
  });

  it("cannot change the source of a deployment with an external image", async () => {
    const { id } = await create(ofImage());
    const answer = await ada.send("PATCH", `/v2/deployments/${id}`, { revision_source: "github", secrets: [] });
    expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining("external_docker")]);
  });

  it.each([["uploads/nothing.tar.gz"], ["../../etc/passwd"], ["/etc/passwd"]])(
    "creates no revision of %s, which was not uploaded",
    async (source_tarball_path) => {
      const { id } = await create(empty());
      const answer = await ada.send("PATCH", `/v2/deployments/${id}`, {
        source_revision_config: { source_tarball_path },
      });
      expect([answer.status, answer.body.detail]).toEqual([
        400,
        expect.stringContaining("This deployment has no uploaded tarball"),
      ]);
      expect(await ada.call("GET", `/v2/deployments/${id}/revisions`)).toMatchObject({ resources: [] });
    },
  );

  it("of which twenty are concurrent creates twenty revisions with distinct numbers, and one remains in the queue", async () => {
    const made = await create(ofImage());
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => patch(made, { secrets: [{ name: "N", value: String(i) }] })),
    );
    const all = await revisions(made);
    const { k } = api.storage.read;
    const rows = await api.storage.read.all(
      k.selectFrom("revisions").select("seq").where("deployment_id", "=", made.id),
    );
    expect(rows.map(({ seq }) => seq).sort((a, b) => a - b)).toEqual(Array.from({ length: 21 }, (_, i) => i + 1));
    expect(all.map(({ status }: Wire) => status)).toEqual(["QUEUED", ...Array(19).fill("SKIPPED")]);
    expect((await ada.call("GET", `/v2/deployments/${made.id}`)).latest_revision_id).toBe(all[0].id);
  });
});
