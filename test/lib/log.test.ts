import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { redact } from "../../src/platform/lib/sanitize-output.ts";

const CANARY = "canary-7f3a9c";

describe("a log line", () => {
  it.each<[string, unknown]>([
    ["a header", { authorization: CANARY }],
    ["a header in capitals", { Authorization: CANARY }],
    ["an API key", { "x-api-key": CANARY }],
    ["an API key as the settings call it", { API_KEYS: [CANARY] }],
    ["a service key", { "X-Service-Key": CANARY }],
    ["a cookie", { cookie: CANARY }],
    ["a set cookie", { "set-cookie": [CANARY] }],
    ["a token", { token: CANARY }],
    ["an access token", { access_token: CANARY }],
    ["a refresh token in camel case", { refreshToken: CANARY }],
    ["an id token", { id_token: CANARY }],
    ["a client secret", { client_secret: CANARY }],
    ["a password", { password: CANARY }],
    ["a PKCE verifier", { code_verifier: CANARY }],
    ["an encryption key", { encryption_keys: [CANARY] }],
    ["an object of secrets", { secret: { value: CANARY } }],
    ["a request's headers", { request: { headers: new Headers({ authorization: CANARY, cookie: CANARY }) } }],
    ["something deep", { a: { b: [{ c: { token: CANARY } }] } }],
    ["something deeper than is logged", { a: { b: { c: { d: { e: { f: { g: { h: CANARY } } } } } } } }],
    ["an error's field", { error: Object.assign(new Error("no"), { token: CANARY }) }],
    ["the cause of an error", { error: new Error("no", { cause: { body: { access_token: CANARY } } }) }],
    ["a row in an error of Postgres", { error: Object.assign(new Error("no"), { detail: `(${CANARY})` }) }],
    ["a credential in a text", { message: `sent Authorization: Bearer ${CANARY}` }],
    ["a credential in an error's message", { error: new Error(`Basic ${CANARY} was refused`) }],
    ["a database's password", { url: `postgres://user:${CANARY}@host/database` }],
    ["a form", { body: `grant_type=refresh_token&refresh_token=${CANARY}&client_secret=${CANARY}` }],
    ["a callback's URL", { url: new URL(`https://example.com/callback?code=${CANARY}&state=${CANARY}`) }],
    [
      "an object that is no data",
      {
        socket: new (class Socket {
          key = CANARY;
        })(),
      },
    ],
  ])("does not show %s", (_, fields) => {
    expect(JSON.stringify(redact(fields))).not.toContain(CANARY);
  });

  it("keeps the other fields", () => {
    const fields = { token_id: "t1", status: 401, code: "ECONNRESET", tokens: 5, path: "/v2/auth/tokens", ok: true };
    expect(redact(fields)).toEqual(fields);
  });

  it("logs an error with its cause", () => {
    const error = new TypeError("fetch failed", {
      cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }),
    });
    expect(redact({ error })).toMatchObject({
      error: {
        type: "TypeError",
        message: "fetch failed",
        stack: expect.stringContaining("log.test.ts"),
        cause: { message: "refused", code: "ECONNREFUSED" },
      },
    });
  });

  it("is redacted, including its message", () => {
    const program = `
      import { createLog } from "./src/platform/lib/log.ts";
      const log = createLog("debug");
      log.debug({ deep: { Authorization: "${CANARY}" }, error: new Error("Bearer ${CANARY}") }, "with Bearer ${CANARY}");
      log.error(new Error("Bearer ${CANARY}"));
    `;
    const { stderr } = spawnSync(process.execPath, ["--input-type=module-typescript", "-e", program], {
      encoding: "utf8",
    });
    const lines = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { deep: { Authorization: "[redacted]" }, error: { message: "Bearer [redacted]" }, msg: "with Bearer [redacted]" },
      { message: "Bearer [redacted]" },
    ]);
    expect(stderr).not.toContain(CANARY);
  });

  it("contains no control characters for the terminal", () => {
    const program = `
      import { createLog } from "./src/platform/lib/log.ts";
      createLog("info").warn({ path: "/a\\u009b2J\\u202e\\u001b]52;c;cm0gLXJm\\u0007" }, "\\u009bm");
    `;
    const { stderr } = spawnSync(process.execPath, ["--input-type=module-typescript", "-e", program], {
      encoding: "utf8",
    });
    expect(stderr).toMatch(/^[\u0020-\u007e]+\n$/);
    expect(JSON.parse(stderr)).toMatchObject({
      path: "/a\u009b2J\u202e\u001b]52;c;cm0gLXJm\u0007",
      msg: "\u009bm",
    });
  });
});
