import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { createProject } from "../support/project.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { Scenario, type Wire } from "./scenario.ts";

const graphs = { chain: resolve(import.meta.dirname, "../graphs/scenarios/chain.ts:chain") };
/** A variable in a header. */
const variable = (name: string) => `\${{ env.${name} }}`;
const write = (fields: object) => createProject({ "langgraph.json": JSON.stringify({ graphs, ...fields }) });

describe("the settings of webhooks", () => {
  const using = async (fields: object, work: (api: Scenario) => Promise<void>) => {
    const project = write(fields);
    const api = await Scenario.start("sqlite", { LG_WEBHOOK_A: "a", LG_WEBHOOK_B: "b" }, { config: project.config });
    await work(api).finally(() => api.stop());
    project.drop();
  };
  const expectRefused = async (api: Scenario, refused: readonly (readonly [webhook: string, reason: string])[]) => {
    for (const [webhook, reason] of refused) {
      const answer = await api.send("POST", "/runs", { assistant_id: "chain", webhook });
      expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining(`body.webhook: ${reason}`)]);
    }
  };

  const PUBLIC = "The URL must refer to a host on the public internet.";

  it("permit only https on ports 443 and 80 of public hosts by default, for runs and crons of every kind", () =>
    using({}, async (api) => {
      await expectRefused(api, [
        ["/runs/of/the/project", "The URL is a path to a route of the project, but the project has no http.app"],
        ["//example.com/runs", "The URL must be absolute"],
        ["http://example.com", "The URL must begin with https://"],
        ["ftp://example.com", "The URL must begin with https://"],
        ["https://example.com:8443", "Port 8443 is not allowed. Allowed ports (webhooks.url.allowed_ports): 443, 80"],
        ["https://user@example.com", "The URL must not contain a user name"],
        ["https://127.0.0.1", PUBLIC],
        ["http://localhost:9", PUBLIC],
        ["https://[::1]", PUBLIC],
        ["https://10.0.0.1", PUBLIC],
        ["https://169.254.169.254/latest", PUBLIC],
        ["https://[fd00::1]", PUBLIC],
      ]);
      const thread_id = await api.newThread();
      const body = { assistant_id: "chain", webhook: "https://10.0.0.1", schedule: "0 * * * *" };
      for (const path of [
        `/threads/${thread_id}/runs`,
        `/threads/${thread_id}/runs/wait`,
        "/runs/stream",
        "/runs/crons",
      ])
        expect((await api.send("POST", path, body)).status).toBe(422);
      expect((await api.send("POST", "/runs/batch", [body])).status).toBe(422);
      const cron: Wire = await api.post("/runs/crons", { ...body, webhook: "https://example.com" });
      expect((await api.send("PATCH", `/runs/crons/${cron.cron_id}`, { webhook: body.webhook })).status).toBe(422);
      expect(await api.get(`/threads/${thread_id}/runs`)).toEqual([]);
    }));

  it("open loopback addresses, and only these, and limit domains, ports and length", async () => {
    const url = { disable_loopback: false, allowed_domains: ["127.0.0.1", "*.example.com"], max_url_length: 40 };
    await using({ webhooks: { url } }, (api) =>
      expectRefused(api, [
        ["http://10.0.0.1", "The URL must begin with https://"],
        ["https://10.0.0.1", PUBLIC],
        [
          "https://example.com",
          "Host example.com is not allowed. Allowed hosts (webhooks.url.allowed_domains): 127.0.0.1, *.example.com",
        ],
        [`https://a.example.com/${"x".repeat(40)}`, "The URL is 62 characters long; the maximum is 40"],
      ]),
    );
    await using({ webhooks: { url: { require_https: true, allowed_ports: [9], disable_loopback: false } } }, (api) =>
      expectRefused(api, [
        ["http://127.0.0.1:9", "The URL must begin with https://"],
        ["https://127.0.0.1:8", "Port 8 is not allowed. Allowed ports (webhooks.url.allowed_ports): 9"],
      ]),
    );
    await using({ webhooks: { url: { require_https: false, allowed_ports: [9] } } }, async (api) => {
      await expectRefused(api, [["http://192.168.0.1:9", PUBLIC]]);
      await api.post("/runs", { assistant_id: "chain", webhook: "http://192.0.0.9.example.com:9", after_seconds: 99 });
    });
  });

  it("disable webhooks: the runs continue and call nothing", () =>
    using({ http: { disable_webhooks: true } }, async (api) => {
      const body = { assistant_id: "chain", input: { steps: ["in"] }, webhook: "http://127.0.0.1:9" };
      expect((await api.post("/runs/wait", body)).steps).toEqual(["in", "a", "b", "c"]);
      expect(await api.get("/webhooks/deliveries")).toEqual([]);
    }));

  it("add headers with variables of the environment; without a secret, there is no signature", async () => {
    const receiver = await startReceiver();
    const headers = { "X-Both": `${variable("LG_WEBHOOK_A")}-${variable("LG_WEBHOOK_B")}`, "X-Plain": "text" };
    await using({ webhooks: { headers, url: { disable_loopback: false } } }, async (api) => {
      await api.post("/runs", { assistant_id: "chain", input: { steps: ["in"] }, webhook: receiver.at("plain") });
      const request = await receiver.nth("plain");
      expect(request.headers).toMatchObject({ "x-both": "a-b", "x-plain": "text", "webhook-id": expect.any(String) });
      expect(request.headers["webhook-signature"]).toBeUndefined();
    });
    await receiver.close();
  });

  it.each([
    [
      { headers: { a: variable("LG_WEBHOOK_MISSING") } },
      {},
      "webhooks.headers.a uses the variable LG_WEBHOOK_MISSING, which is not set",
    ],
    [
      { headers: { a: variable("HOME") } },
      {},
      "only variables with the prefix LG_WEBHOOK_ (webhooks.env_prefix) are allowed",
    ],
    [{ headers: { a: variable("A").replace("env.", "") } }, {}, "webhooks.headers.a contains an invalid variable"],
    [{ headers: { "webhook-id": "x" } }, {}, "webhooks.headers.webhook-id is a header that the service sets"],
    [{ headers: { "a b": "x" } }, {}, "webhooks.headers.a b is not a valid header"],
    [
      { url: { allowed_ports: [0] } },
      {},
      "webhooks.url.allowed_ports must be a list of integers from 1 to 65535, but is [0]",
    ],
    [{ url: { private: true } }, {}, "webhooks.url.private is unknown"],
    [
      {},
      { THREADMILL_WEBHOOK_SECRET: "secret" },
      'THREADMILL_WEBHOOK_SECRET must be "whsec_" followed by a base64 key',
    ],
  ])("are refused at the start if they are invalid: %j", (webhooks, env, reason) => {
    const project = write({ webhooks });
    expect(() => readConfig("serve", { config: project.config }, env)).toThrow(reason);
    project.drop();
  });
});
