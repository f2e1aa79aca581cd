import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { insertWorkspace } from "../../src/access/storage/workspaces.ts";
import { Instance } from "../control/router/instance.ts";
import { World } from "../control/router/world.ts";

/**
 * A finding of the security review: the answers without a key said which deployments there are. Whoever may not use a deployment is
 * answered, byte for byte but for the slug that they sent, what they are answered where there is none.
 */

const DOMAIN = "apps.example";
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"];
const PATHS = ["/", "/ok", "/ok?check_db=1", "/threads", "/docs", "/app", "/..", "/a/%2e%2e/b", "//x", "/info?a=b#c"];
const REQUESTS = [
  ...METHODS.flatMap((method) => ["/threads", "/ok", "/.."].map((path) => [method, path] as const)),
  ...PATHS.map((path) => ["GET", path] as const),
];
/** With what changes the answer in itself, those that go different ways. */
const FEW = REQUESTS.filter(([method, path]) => path === "/threads" || (method === "GET" && /ok|\.\./.test(path)));
const PREFLIGHT = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-api-key"];
const UPGRADE = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=="];
/** What a caller may send besides. */
const MORE: Record<string, string[]> = {
  nothing: [],
  "a page's origin": ["Origin: https://page.example"],
  "a preflight": ["Origin: https://page.example", ...PREFLIGHT],
  "a preflight without an origin": PREFLIGHT,
  "a visit": ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
  "a form": ["Origin: https://page.example", "Content-Type: text/plain"],
  "a service worker": ["Service-Worker: script"],
  "another coding": ["Transfer-Encoding: gzip, chunked"],
  "an upgrade to another protocol": ["Upgrade: h2c"],
};

describe.each([true, false])("whether responses reveal that a deployment exists, on loopback: %s", (is_loopback) => {
  let world: World;
  let instance: Instance;
  /** Slugs of one length, so that lengths say nothing. */
  const NOBODYS = "nobody-0";
  const there: Record<string, string> = {};
  let elsewhere: string[];
  let withoutScope: string[];
  beforeAll(async () => {
    world = await World.open("sqlite", { deployments_domain: DOMAIN, is_loopback, router_wait_ms: 20 });
    instance = await Instance.start();
    const { database } = world.storage;
    const tenant_id = randomUUID();
    await database.write((tx) => insertWorkspace(tx, { tenant_id, name: "elsewhere" }));
    elsewhere = [`X-Api-Key: ${(await world.key({ tenant_id }))["x-api-key"]}`];
    withoutScope = [`X-Api-Key: ${(await world.key({ scopes: ["experiments"] }))["x-api-key"]}`];
    const known = {
      "that serves": [instance.upstream],
      "without an instance": [],
      "that this process has yet to meet": undefined,
    };
    for (const [name, upstreams] of Object.entries(known)) {
      const { deployment_id, slug } = await world.deployment({ slug: `theirs-${Object.keys(there).length}` });
      if (upstreams) world.router.activate(deployment_id, upstreams);
      there[name] = slug;
    }
    expect(Object.values(there).map((slug) => slug.length)).toEqual([NOBODYS.length, NOBODYS.length, NOBODYS.length]);
  });
  afterAll(async () => {
    await world.close();
    await instance.stop();
  });

  const BY = {
    "the path": (slug: string, path: string) => [`/deployments/${slug}${path}`, `127.0.0.1:${world.process.port}`],
    "a host name": (slug: string, path: string) => [path, `${slug}.${DOMAIN}`],
  } as const;

  /** The whole answer, with the slug and the time taken out. */
  async function answer(by: keyof typeof BY, slug: string, method: string, path: string, headers: string[]) {
    const [url, host] = BY[by](slug, path);
    const isUpgrade = headers.some((header) => header.startsWith("Upgrade:"));
    const lines = [
      `${method} ${url} HTTP/1.1`,
      `Host: ${host}`,
      `Connection: ${isUpgrade ? "close, upgrade" : "close"}`,
    ];
    const text = await world.process.raw(`${[...lines, ...headers].join("\r\n")}\r\n\r\n`);
    return text.replaceAll(slug, "SLUG").replace(/^date: .*\r\n/im, "");
  }

  describe.each(Object.keys(BY) as (keyof typeof BY)[])("by %s", (by) => {
    const callers: Record<string, () => string[]> = {
      "no key": () => [],
      "an unknown key": () => ["X-Api-Key: nobody"],
      "a key of another workspace": () => elsewhere,
      "a key without the scope": () => withoutScope,
    };
    it("they are refused", async () => {
      const statuses: Record<string, string> = {};
      for (const [name, headers] of Object.entries(callers))
        statuses[name] = (await answer(by, NOBODYS, "GET", "/threads", headers())).slice(9, 12);
      expect(Object.values(statuses)).toEqual(["401", "401", "404", "403"]);
    });

    describe.each(Object.keys(callers))("with %s", (caller) => {
      it.each(Object.keys(MORE))("and %s", async (more) => {
        const headers = [...(callers[caller] as () => string[])(), ...(MORE[more] as string[])];
        const before = instance.seen.length;
        for (const [method, path] of more === "nothing" ? REQUESTS : FEW) {
          const expected = await answer(by, NOBODYS, method, path, headers);
          for (const [name, slug] of Object.entries(there)) {
            const got = await answer(by, slug, method, path, headers);
            expect([name, method, path, got]).toEqual([name, method, path, expected]);
          }
        }
        expect(instance.seen.length).toBe(before);
      });

      it("and the wish for a WebSocket", async () => {
        for (const origin of [[], ["Origin: https://page.example"]]) {
          const headers = [...(callers[caller] as () => string[])(), ...UPGRADE, ...origin];
          for (const path of PATHS) {
            const expected = await answer(by, NOBODYS, "GET", path, headers);
            for (const [name, slug] of Object.entries(there))
              expect([name, path, await answer(by, slug, "GET", path, headers)]).toEqual([name, path, expected]);
          }
        }
      });
    });
  });
});
