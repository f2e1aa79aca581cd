import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../../support/databases.ts";
import { UNKNOWN_ID } from "../scenario.ts";
import { ControlApi, DEPLOYMENT_FIELDS, empty, ISO, ofImage, ofRepository, type User, UUID, type Wire } from "./api.ts";

describe.each(databases)("deployments on %s", (database) => {
  let api: ControlApi;
  let ada: User;
  let elsewhere: User;
  beforeAll(async () => {
    api = await ControlApi.start(database);
    ada = await api.user();
    elsewhere = await api.user(await api.newWorkspace("elsewhere"));
  });
  afterAll(() => api.stop());

  const create = (body: object, who = ada): Promise<Wire> => who.call("POST", "/v2/deployments", body, 201);

  it("of a repository are created with their first revision, all fields there and nothing else", async () => {
    const answer = await ada.send("POST", "/v2/deployments", ofRepository({ name: "My_Deployment" }));
    expect(answer.status).toBe(201);
    expect(Object.keys(answer.body)).toEqual(DEPLOYMENT_FIELDS);
    expect(answer.body).toEqual({
      id: expect.stringMatching(UUID),
      tenant_id: ada.tenant_id,
      name: "My_Deployment",
      source: "github",
      source_config: {
        integration_id: null,
        repo_url: "https://git.example.com/team/agent.git",
        deployment_type: null,
        build_on_push: null,
        custom_url: "http://localhost/deployments/my-deployment",
        resource_spec: null,
        listener_id: null,
        listener_config: null,
        install_command: null,
        build_command: null,
      },
      source_revision_config: {
        repo_ref: "main",
        repo_commit_sha: null,
        langgraph_config_path: "langgraph.json",
        image_uri: null,
        source_tarball_path: null,
      },
      secrets: [],
      secret_references: [],
      status: "READY",
      latest_revision_id: expect.stringMatching(UUID),
      active_revision_id: null,
      image_version: null,
      created_at: expect.stringMatching(ISO),
      updated_at: expect.stringMatching(ISO),
    });
    expect(await ada.call("GET", `/v2/deployments/${answer.body.id}`)).toEqual(answer.body);
    expect(await ada.call("GET", `/api-host/v2/deployments/${answer.body.id}`)).toEqual(answer.body);
    const { resources } = await ada.call("GET", `/v2/deployments/${answer.body.id}/revisions`);
    expect(resources).toMatchObject([{ id: answer.body.latest_revision_id, status: "CREATING", source: "github" }]);
  });

  it.each(["external_docker", "internal_docker"])("of %s have a first revision with their image", async (source) => {
    const made = await create(ofImage({ source }));
    expect(made.latest_revision_id).toMatch(UUID);
    expect(made.source_revision_config).toMatchObject({ image_uri: "registry.example.com/agent:1", repo_ref: null });
  });

  it.each(["internal_docker", "internal_source"])("of %s may begin without a revision", async (source) => {
    const made = await create(empty({ source, secrets: undefined }));
    expect(made).toMatchObject({ latest_revision_id: null, active_revision_id: null, secrets: [] });
    expect(Object.values(made.source_revision_config)).toEqual([null, null, null, null, null]);
    expect(await ada.call("GET", `/v2/deployments/${made.id}/revisions`)).toEqual({ resources: [], offset: 0 });
  });

  it.each<[string, object, string]>([
    ["a repository without its URL", ofRepository({ source_config: {} }), "repo_url"],
    ["an image without its name", ofImage({ source_revision_config: {} }), "image_uri"],
    [
      "source with a config path and no tarball",
      empty({ source_revision_config: { langgraph_config_path: "a" } }),
      "source_tarball_path",
    ],
    [
      "source with a tarball of nobody",
      empty({ source_revision_config: { source_tarball_path: "uploads/x" } }),
      "PATCH",
    ],
    [
      "a repository that git would take for an option",
      ofRepository({ source_config: { repo_url: "--upload-pack=x" } }),
      "repo_url",
    ],
    ["a repository by a helper of git", ofRepository({ source_config: { repo_url: "ext::sh -c id" } }), "repo_url"],
    [
      "a password that everybody could read",
      ofRepository({ source_config: { repo_url: "https://u:p@h/r" } }),
      "must not contain credentials",
    ],
    [
      "a ref that git would take for an option",
      ofRepository({ source_revision_config: { repo_ref: "--x" } }),
      "repo_ref",
    ],
    [
      "a config outside of the source",
      ofRepository({ source_revision_config: { langgraph_config_path: "../x" } }),
      "langgraph_config_path",
    ],
    [
      "a config at the root of the machine",
      ofRepository({ source_revision_config: { langgraph_config_path: "/x" } }),
      "langgraph_config_path",
    ],
    ["an image with a space", ofImage({ source_revision_config: { image_uri: "a b" } }), "image_uri"],
    [
      "a tag that builds on push",
      ofRepository({
        source_config: { repo_url: "https://h/r", build_on_push: true },
        source_revision_config: { repo_ref: "refs/tags/v1" },
      }),
      "build_on_push",
    ],
    [
      "a listener of nobody",
      ofImage({ source_config: { listener_id: UNKNOWN_ID } }),
      `Listener ID ${UNKNOWN_ID} not found.`,
    ],
    [
      "limits below what is asked for",
      ofImage({ source_config: { resource_spec: { cpu: 4, cpu_limit: 2 } } }),
      "resource_spec.cpu_limit",
    ],
    [
      "fewer at most than at least",
      ofImage({ source_config: { resource_spec: { min_scale: 3, max_scale: 2 } } }),
      "resource_spec.max_scale",
    ],
  ])("are refused with a sentence: %s", async (_, body, part) => {
    const { resources: before } = await ada.call("GET", "/v2/deployments?limit=100");
    const answer = await ada.send("POST", "/v2/deployments", body);
    expect([answer.status, answer.text]).toEqual([400, answer.text]);
    expect(answer.body).toEqual({ detail: expect.stringContaining(part) });
    expect((await ada.call("GET", "/v2/deployments?limit=100")).resources).toEqual(before);
  });

  it("have names that are unique in a workspace, and paths that are unique across workspaces", async () => {
    const one = await create(ofImage({ name: "Chat Bot" }));
    const again = await ada.send("POST", "/v2/deployments", ofImage({ name: "Chat Bot" }));
    expect([again.status, again.body.detail]).toEqual([400, expect.stringContaining('"Chat Bot"')]);
    const slugs = [
      one,
      await create(ofImage({ name: "chat-bot" })),
      await create(ofImage({ name: "Chat Bot" }), elsewhere),
    ].map(({ source_config }) => source_config.custom_url.replace(/.*\//, ""));
    expect(slugs).toEqual([
      "chat-bot",
      expect.stringMatching(/^chat-bot-[0-9a-f]{6}$/),
      expect.stringMatching(/^chat-bot-[0-9a-f]{6}$/),
    ]);
    expect(new Set(slugs).size).toBe(3);
  });

  it("that are created by twenty concurrent requests under one name are one", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ada.send("POST", "/v2/deployments", ofImage({ name: "at once" }))),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(400)]);
  });

  it("have limits that are derived from the requested resources", async () => {
    const resource_spec = { cpu: "0.33", memory_mb: 512, redis_memory_mb: 64, unknown: 1, max_scale: 3 };
    const { source_config } = await create(ofImage({ source_config: { resource_spec } }));
    expect(source_config.resource_spec).toEqual({
      cpu: 0.33,
      cpu_limit: 0.7,
      memory_mb: 512,
      memory_limit_mb: 1024,
      max_scale: 3,
      queue_cpu: 0.33,
      queue_cpu_limit: 0.7,
      queue_memory_mb: 512,
      queue_memory_limit_mb: 1024,
      queue_max_scale: 3,
      redis_memory_mb: 64,
      redis_memory_limit_mb: 64,
    });
  });

  it("keep a custom URL only with external images", async () => {
    const source_config = { custom_url: "https://agent.example.com" };
    expect((await create(ofImage({ source_config }))).source_config.custom_url).toBe("https://agent.example.com");
    const { id, source_config: filled } = await create(empty({ source_config }));
    expect(filled.custom_url).toMatch(/^http:\/\/localhost\/deployments\/empty-/);
    const { source_config: patched } = await ada.call("PATCH", `/v2/deployments/${id}`, { source_config });
    expect(patched.custom_url).toBe(filled.custom_url);
  });

  it("run in a namespace of their listener", async () => {
    const { id } = await ada.call(
      "POST",
      "/v2/listeners",
      { compute_type: "k8s", compute_id: "c", compute_config: { k8s_namespaces: ["a", "b"] } },
      201,
    );
    const bound = (k8s_namespace: string) =>
      ofImage({ source_config: { listener_id: id, listener_config: { k8s_namespace } } });
    const wrong = await ada.send("POST", "/v2/deployments", bound("c"));
    expect([wrong.status, wrong.body.detail]).toEqual([400, expect.stringContaining("a, b")]);
    const made = await create(bound("b"));
    const found = await ada.call("GET", "/v2/deployments?remote_reconciled=true");
    expect(found.resources.map(({ id }: Wire) => id)).toEqual([made.id]);
    const others = await ada.call("GET", "/v2/deployments?remote_reconciled=no&limit=100");
    expect(others.resources.map(({ id }: Wire) => id)).not.toContain(made.id);
    const revisions = (query: string) => ada.call("GET", `/v2/deployments/${made.id}/revisions?${query}`);
    expect((await revisions("remote_reconciled=true")).resources).toHaveLength(1);
    expect((await revisions("remote_reconciled=false")).resources).toHaveLength(0);
  });

  it("are listed in pages, the newest first", async () => {
    const who = await api.user(await api.newWorkspace("pages"));
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift((await create(ofImage(), who)).id);
    const pages = [];
    for (let offset = 0; ; ) {
      const page = await who.call("GET", `/v2/deployments?limit=2&offset=${offset}`);
      expect(page.offset).toBe(offset + page.resources.length);
      if (page.resources.length === 0) break;
      pages.push(page.resources.map(({ id }: Wire) => id));
      offset = page.offset;
    }
    expect(pages).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
    expect((await who.call("GET", "/v2/deployments")).resources).toHaveLength(5);
  });

  it("are found by a part of their name, an exact match first", async () => {
    const who = await api.user(await api.newWorkspace("names"));
    for (const name of ["bot", "bot-2", "Robot", "other", "50%_bot"]) await create(ofImage({ name }), who);
    const names = async (part: string) =>
      (await who.call("GET", `/v2/deployments?name_contains=${encodeURIComponent(part)}`)).resources.map(
        ({ name }: Wire) => name,
      );
    expect(await names("bot")).toEqual(["bot", "50%_bot", "Robot", "bot-2"]);
    expect(await names("BOT")).toHaveLength(4);
    expect(await names("%_")).toEqual(["50%_bot"]);
    expect(await names("nobody")).toEqual([]);
    expect(await names("")).toHaveLength(5);
  });

  it("are found by each of the filters", async () => {
    const who = await api.user(await api.newWorkspace("filters"));
    const dev = await create(empty(), who);
    const free = await create(empty({ source_config: { deployment_type: "dev_free" } }), who);
    const image = await create(ofImage({ name: "by name", source_config: { deployment_type: "dev_zero" } }), who);
    await api.become(image.latest_revision_id, "DEPLOYED", { image_version: "0.16.0" });
    await who.call("DELETE", `/v2/deployments/${dev.id}`, undefined, 204);
    const ids = async (query: string) =>
      (await who.call("GET", `/v2/deployments?${query}`)).resources.map(({ id }: Wire) => id);
    expect(await ids("status=AWAITING_DELETE")).toEqual([dev.id]);
    expect(await ids("status=READY")).toEqual([image.id, free.id]);
    expect(await ids("status=NOTHING")).toEqual([]);
    expect(await ids("deployment_type=dev_free")).toEqual([free.id]);
    expect(await ids("deployment_type=dev_zero")).toEqual([image.id]);
    expect(await ids("deployment_type=prod")).toEqual([]);
    expect(await ids("name=by%20name&name_contains=by")).toEqual([image.id]);
    expect(await ids("name=by")).toEqual([]);
    expect(await ids("name=")).toHaveLength(3);
    expect(await ids("agent_id=a&agent_environment=production")).toEqual([]);
    expect(await ids("agent_environment=production")).toEqual([]);
    expect(await ids("agent_id=&agent_environment=")).toHaveLength(3);
    expect(await ids("image_version=0.16.0")).toEqual([image.id]);
    expect(await ids(`deployment_ids=${dev.id},${image.id.toUpperCase()},x`)).toEqual([image.id, dev.id]);
    expect(await ids("deployment_ids=")).toHaveLength(3);
    expect(await ids(`tag_value_ids=${UNKNOWN_ID}`)).toEqual([]);
    expect(await ids("tag_value_ids=")).toHaveLength(3);
    expect(await ids("limit=1&unknown=1")).toEqual([image.id]);
    expect(await who.call("GET", "/v2/deployments/free-count")).toEqual({ count: 1 });
    expect(await who.call("GET", `/v2/deployments/${image.id}`)).toMatchObject({ image_version: "0.16.0" });
  });

  it("are marked as being deleted at once, and cannot be changed any more", async () => {
    for (const query of ["", "?delete_tracing_project=true", "?force=true"]) {
      const { id, name } = await create(ofImage());
      for (let i = 0; i < 2; i++) {
        const answer = await ada.send("DELETE", `/v2/deployments/${id}${query}`);
        expect([answer.status, answer.text]).toEqual([204, ""]);
      }
      expect((await ada.call("GET", `/v2/deployments/${id}`)).status).toBe("AWAITING_DELETE");
      for (const [method, path, body] of [
        ["PATCH", "", { secrets: [] }],
        ["POST", "/revisions", {}],
        ["POST", "/upload-url", undefined],
      ] as const) {
        const answer = await ada.send(method, `/v2/deployments/${id}${path}`, body);
        expect([answer.status, answer.body?.detail]).toEqual([
          400,
          expect.stringContaining(`"${name}" is being deleted`),
        ]);
      }
      const again = await ada.send("POST", "/v2/deployments", ofImage({ name }));
      expect([again.status, again.body.detail]).toEqual([400, expect.stringContaining("is being deleted")]);
    }
  });

  it("are deleted in bulk: 200 for all of them, 207 for some, 404 for none", async () => {
    const [a, b] = [await create(ofImage()), await create(ofImage())];
    const theirs = await create(ofImage(), elsewhere);
    const remove = (...ids: string[]) =>
      ada.send("DELETE", `/v2/deployments?${ids.map((id) => `deployment_ids=${id}`).join("&")}`);
    const none = await remove(UNKNOWN_ID, theirs.id);
    expect([none.status, none.body]).toEqual([404, { detail: `Deployment ID ${UNKNOWN_ID}, ${theirs.id} not found.` }]);
    const some = await remove(a.id, theirs.id);
    expect([some.status, some.body]).toEqual([207, { deleted: [a.id], not_found: [theirs.id] }]);
    const all = await remove(a.id, b.id, b.id);
    expect([all.status, all.body]).toEqual([200, { deleted: [a.id, b.id], not_found: [] }]);
    for (const { id } of [a, b])
      expect((await ada.call("GET", `/v2/deployments/${id}`)).status).toBe("AWAITING_DELETE");
    expect((await elsewhere.call("GET", `/v2/deployments/${theirs.id}`)).status).toBe("READY");
  });

  it("have no tokens for pushing: there is no registry", async () => {
    const refusal = async (body: object) => {
      const { id } = await create(body);
      const answer = await ada.send("POST", `/v2/deployments/${id}/push-token`);
      return [answer.status, answer.body.detail];
    };
    expect(await refusal(empty({ source: "internal_docker" }))).toEqual([
      400,
      expect.stringContaining("This service has no image registry"),
    ]);
    for (const body of [empty(), ofImage(), ofRepository()])
      expect(await refusal(body)).toEqual([
        400,
        expect.stringContaining("only available for 'internal_docker' source deployments"),
      ]);
  });

  it("that do not exist or belong to another workspace are not found by any route", async () => {
    const theirs = await create(ofImage(), elsewhere);
    const revision = theirs.latest_revision_id;
    for (const id of [UNKNOWN_ID, theirs.id]) {
      const at = `/v2/deployments/${id}`;
      for (const [method, path, body] of [
        ["GET", at, undefined],
        ["PATCH", at, { secrets: [] }],
        ["DELETE", at, undefined],
        ["GET", `${at}/revisions`, undefined],
        ["POST", `${at}/revisions`, {}],
        ["GET", `${at}/revisions/${revision}`, undefined],
        ["POST", `${at}/revisions/${revision}/redeploy`, undefined],
        ["POST", `${at}/revisions/${revision}/interrupt`, undefined],
        ["POST", `${at}/revisions/${revision}/interruption`, undefined],
        ["GET", `${at}/revisions/${revision}/logs?type=build`, undefined],
        ["GET", `${at}/logs`, undefined],
        ["GET", `/v2/deployment-logs?deployment_id=${id}`, undefined],
        ["POST", `${at}/upload-url`, undefined],
        ["POST", `${at}/push-token`, undefined],
        ["POST", `/v1/projects/${id}/revisions/${revision}/build_logs`, {}],
        ["POST", `/v1/projects/${id}/revisions/${revision}/deploy_logs`, {}],
        ["POST", `/v1/projects/${id}/deploy_logs`, {}],
      ] as const) {
        const answer = await ada.send(method, path, body);
        expect([method, path, answer.status, answer.body]).toEqual([
          method,
          path,
          404,
          { detail: `Deployment ID ${id} not found.` },
        ]);
      }
    }
    expect((await ada.call("GET", "/v2/deployments?limit=100")).resources.map(({ id }: Wire) => id)).not.toContain(
      theirs.id,
    );
    expect(await elsewhere.call("GET", `/v2/deployments/${theirs.id}`)).toEqual(theirs);
  });
});
