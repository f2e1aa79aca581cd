import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { escapeControlCharacters } from "../../src/platform/lib/sanitize-output.ts";
import { ADMIN, closedService } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { startService, type TestService } from "../support/service.ts";

/** Finding 11 of the security review: what answers and texts carry to those who should not have it. */

describe("texts of other users in a terminal", () => {
  it.each([
    [
      "an address in a link",
      "\u001b]8;;https://evil.example\u0007click\u001b]8;;\u0007",
      "\\u001b]8;;https://evil.example\\u0007click\\u001b]8;;\\u0007",
    ],
    ["the clipboard", "\u001b]52;c;cm0gLXJm\u001b\\", "\\u001b]52;c;cm0gLXJm\\u001b\\"],
    ["a cursor that moves, in 8 bits", "a\u009b2Jb", "a\\u009b2Jb"],
    ["a line that is written over", "bad\rgood", "bad\\u000dgood"],
    ["letters in another order", "a\u202ecod.exe", "a\\u202ecod.exe"],
    ["what is harmless", "one\ttwo\nthree é 漢 😀", "one\ttwo\nthree é 漢 😀"],
  ])("shows %s", (_, text, shown) => {
    expect(escapeControlCharacters(text)).toBe(shown);
    const line = JSON.stringify({ message: text });
    expect(JSON.parse(escapeControlCharacters(line))).toEqual({ message: text });
  });
});

describe("answers that may have a secret in them", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService("sqlite");
  });
  afterAll(() => api.stop());

  it.each([
    "/v2/deployments",
    "/v2/auth/tokens",
    "/v2/auth/providers",
    "/admin/keys",
    "/api-host/v2/deployments",
    "/v2/auth/wait/x",
  ])("are not cached by intermediaries: %s", async (path) => {
    expect((await api.send("GET", path, undefined, ADMIN)).headers.get("cache-control")).toBe("no-store");
  });
});

describe("addresses that a service hands out", () => {
  let service: TestService;
  let url: URL;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "test/graphs/scenarios/langgraph.json" });
    url = new URL(await service.listen());
  });
  afterAll(() => service.stop());

  it("have the host of the Host header, whatever host the request line names", async () => {
    const body = { name: "mine", source: "internal_source", source_config: {}, source_revision_config: {} };
    const { id } = (await service.request("POST", "/v2/deployments", body)).body;
    // Node sends the path as it is: the absolute form of RFC 9112, 3.2.2.
    const path = `http://evil.example/v2/deployments/${id}/upload-url`;
    const text = await new Promise<string>((resolve, reject) => {
      const sent = request({ host: url.hostname, port: url.port, method: "POST", path, headers: { host: url.host } });
      sent.on("error", reject).on("response", async (answer) => resolve((await answer.toArray()).join("")));
      sent.end();
    });
    expect(JSON.parse(text).upload_url).toMatch(new RegExp(`^http://${url.host}/v2/uploads/`));
  });
});
