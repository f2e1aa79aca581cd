import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import {
  createSafeFetch,
  FetchFailedError,
  FetchRefusedError,
  urlRefusal,
} from "../../src/platform/lib/safe-fetch/safe-fetch.ts";

const STRICT = { allow_loopback: false };
const LOCAL = { allow_loopback: true };
const LIMITS = { timeout_ms: 10_000, max_bytes: 100_000 };

const HOST = "The URL must refer to a host on the public internet.";
const HTTPS = "The URL must begin with https://.";
const PORT = "The URL must use port 443, or port 1024 or higher.";
const WHOLE = "The URL must be absolute, such as https://example.com/path.";
const USER = "The URL must not contain a user name or a password.";

describe("a URL is refused by its text", () => {
  it.each([
    ["http://example.com", HTTPS],
    ["ftp://example.com", HTTPS],
    ["file:///etc/passwd", HTTPS],
    ["data:text/plain,hello", HTTPS],
    ["javascript:alert(1)", HTTPS],
    ["unix:/run/docker.sock", HTTPS],
    ["/relative", WHOLE],
    ["", WHOLE],
    ["https://", WHOLE],
    ["https://user@example.com", USER],
    ["https://user:pass@example.com", USER],
    ["https://example.com:22", PORT],
    ["https://example.com:25", PORT],
    ["https://example.com:80", PORT],
    ["https://example.com:1023", PORT],
  ])("%s: %s", (url, sentence) => {
    expect(urlRefusal(url, STRICT)).toBe(sentence);
  });

  it.each([
    ["https://0.0.0.0", "this network"],
    ["https://0.1.2.3", "this network"],
    ["https://10.1.2.3", "private"],
    ["https://100.64.0.1", "shared by carriers"],
    ["https://100.127.255.255", "shared by carriers"],
    ["https://127.0.0.1", "loopback"],
    ["https://127.255.255.254", "loopback"],
    ["https://169.254.169.254/latest/meta-data", "the metadata of clouds"],
    ["https://172.16.0.1", "private"],
    ["https://172.31.255.255", "private"],
    ["https://192.0.0.1", "protocol assignments"],
    ["https://192.0.2.1", "documentation"],
    ["https://192.88.99.1", "6to4 relay"],
    ["https://192.168.1.1", "private"],
    ["https://198.18.0.1", "benchmarks"],
    ["https://198.19.255.255", "benchmarks"],
    ["https://198.51.100.1", "documentation"],
    ["https://203.0.113.1", "documentation"],
    ["https://224.0.0.1", "multicast"],
    ["https://240.0.0.1", "reserved"],
    ["https://255.255.255.255", "broadcast"],
    ["https://2130706433", "127.0.0.1 as one number"],
    ["https://0x7f000001", "127.0.0.1 in hex"],
    ["https://0177.0.0.1", "127.0.0.1 in octal"],
    ["https://127.1", "127.0.0.1 with parts left out"],
    ["https://0x7f.1", "127.0.0.1 in hex with parts left out"],
    ["https://127.0.0.1.", "127.0.0.1 with a dot at the end"],
    ["https://%31%32%37.0.0.1", "127.0.0.1 percent-encoded"],
    ["https://１２７.0.0.1", "127.0.0.1 in full-width digits"],
    ["https://①②⑦.⓪.⓪.①", "127.0.0.1 in circled digits"],
    ["https://127。0。0。1", "127.0.0.1 with ideographic full stops"],
    ["https://[::]", "unspecified"],
    ["https://[::1]", "loopback"],
    ["https://[0:0:0:0:0:0:0:1]", "loopback written out"],
    ["https://[fc00::1]", "unique local"],
    ["https://[fd12:3456::1]", "unique local"],
    ["https://[fe80::1]", "link-local"],
    ["https://[ff02::1]", "multicast"],
    ["https://[2001:db8::1]", "documentation"],
    ["https://[3fff::1]", "documentation"],
    ["https://[::ffff:127.0.0.1]", "127.0.0.1, mapped"],
    ["https://[::ffff:7f00:1]", "127.0.0.1, mapped, in hex"],
    ["https://[::ffff:8.8.8.8]", "a public address, mapped"],
    ["https://[::127.0.0.1]", "127.0.0.1, compatible"],
    ["https://[64:ff9b::127.0.0.1]", "127.0.0.1 by NAT64"],
    ["https://[64:ff9b::a9fe:a9fe]", "169.254.169.254 by NAT64"],
    ["https://[64:ff9b::]", "0.0.0.0 by NAT64"],
    ["https://[64:ff9b:1::8.8.8.8]", "a NAT64 of one's own"],
    ["https://[2002:7f00:1::]", "127.0.0.1 by 6to4"],
    ["https://[2001:0:53aa:64c:0:fbff:80ff:fffe]", "127.0.0.1 by Teredo"],
    ["https://[100::1]", "discarded"],
    ["https://localhost", "a name of this machine"],
    ["https://LOCALHOST", "in capitals"],
    ["https://localhost.", "with a dot at the end"],
    ["https://api.localhost", "beneath localhost"],
    ["https://metadata.google.internal", "the metadata of a cloud"],
    ["https://metadata", "a name without a dot"],
    ["https://postgres:5432", "a neighbour in a container network"],
    ["https://printer.local", "multicast DNS"],
    ["https://router.home.arpa", "a home network"],
    ["https://example.com.", "a dot at the end"],
  ])("%s is %s", (url) => {
    expect(urlRefusal(url, STRICT)).toBe(HOST);
  });

  it.each(["https://[fe80::1%25eth0]", "https://[::1", "https://256.0.0.1", "https://1.2.3.4.5"])(
    "%s is not a host",
    (url) => {
      expect(urlRefusal(url, STRICT)).toBe(WHOLE);
    },
  );

  it.each([
    "https://example.com",
    "https://EXAMPLE.com:443/path?a=b#c",
    "https://login.example.co.uk:8443",
    "https://bücher.example.com",
    "https://mylocalhost.com",
    "https://internal.example.com",
    "https://8.8.8.8",
    "https://172.32.0.1",
    "https://[2606:4700::1111]",
    "https://[64:ff9b::8.8.8.8]",
  ])("%s is not", (url) => {
    expect(urlRefusal(url, STRICT)).toBeUndefined();
    expect(urlRefusal(url, LOCAL)).toBeUndefined();
  });

  it.each([
    "http://localhost",
    "https://localhost:22",
    "http://a.localhost:3000",
    "http://127.0.0.1:8080",
    "http://[::1]:1",
  ])("%s is not when loopback is permitted", (url) => {
    expect(urlRefusal(url, STRICT)).toBeDefined();
    expect(urlRefusal(url, LOCAL)).toBeUndefined();
  });

  it("may have any scheme of the web and any port if the caller has rules for these, but no private host", () => {
    const rules = { ...STRICT, allow_http_and_all_ports: true };
    for (const url of ["http://example.com", "http://example.com:25", "https://8.8.8.8:22"])
      expect(urlRefusal(url, rules)).toBeUndefined();
    expect(urlRefusal("ftp://example.com", rules)).toBe(HTTPS);
    for (const url of ["http://10.0.0.1", "http://127.0.0.1", "http://localhost"])
      expect(urlRefusal(url, rules)).toBe(HOST);
  });

  it.each([
    "http://example.com",
    "https://10.0.0.1",
    "https://0.0.0.0",
    "https://[::]",
    "https://[::ffff:127.0.0.1]",
    "https://a.internal",
  ])("%s is even then", (url) => {
    expect(urlRefusal(url, LOCAL)).toBeDefined();
  });
});

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
});

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A server on loopback; its port is the end of its URL. */
async function serve(answer: Answer, { host = "127.0.0.1", port = 0 } = {}): Promise<{ url: string; port: number }> {
  const server = createServer(answer).listen(port, host);
  servers.push(server);
  await once(server, "listening");
  const { port: taken } = server.address() as AddressInfo;
  return { url: `http://${host}:${taken}`, port: taken };
}

/** Answers what came: method, headers and body. */
const echo: Answer = async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  response.end(JSON.stringify({ method: request.method, headers: request.headers, body }));
};

const redirectTo =
  (location: string, status = 302): Answer =>
  (_, response) =>
    response.writeHead(status, { location }).end("secret of the first");

const local = createSafeFetch(LOCAL, LIMITS);

describe("the response of a fetch", () => {
  it("is returned completely, with its status, headers and URL", async () => {
    const { url } = await serve((_, response) => response.writeHead(418, { "x-kind": "pot" }).end("tea"));
    const response = await local(`${url}/a`);
    expect([response.status, response.headers.get("x-kind"), response.url]).toEqual([418, "pot", `${url}/a`]);
    expect(await response.text()).toBe("tea");
    expect(response).toBeInstanceOf(Response);
  });

  it("is unpacked", async () => {
    const { url } = await serve((_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("tea")),
    );
    expect(await (await local(url)).text()).toBe("tea");
  });

  it("can be to a request with method, headers and body, and may have no body", async () => {
    const { url } = await serve(echo);
    const init = { method: "POST", headers: { authorization: "Basic x" }, body: new URLSearchParams({ a: "b" }) };
    const came = (await (await local(url, init)).json()) as { headers: object };
    expect(came).toMatchObject({ method: "POST", body: "a=b", headers: { authorization: "Basic x" } });
    expect(came.headers).toMatchObject({ "content-type": "application/x-www-form-urlencoded;charset=UTF-8" });
    const empty = await serve((_, response) => response.writeHead(204).end());
    expect((await local(empty.url)).status).toBe(204);
  });

  it("uses a connection of its own, which is closed afterwards", async () => {
    const connections = new Set<unknown>();
    const closed: Promise<unknown>[] = [];
    const { url } = await serve(({ socket }, response) => {
      connections.add(socket);
      closed.push(once(socket, "close"));
      response.end();
    });
    await local(url);
    await local(url);
    await Promise.all(closed);
    expect(connections.size).toBe(2);
  });

  it("reaches localhost without asking a name server, on IPv4 and IPv6", async () => {
    const neverAsked = createSafeFetch(LOCAL, LIMITS, async () => expect.unreachable("asked"));
    const { port } = await serve(echo);
    expect((await neverAsked(`http://localhost:${port}`)).status).toBe(200);
    expect((await neverAsked(`http://any.localhost:${port}`)).status).toBe(200);
    const six = await serve(echo, { host: "::1" }).catch(() => undefined);
    if (six) expect((await neverAsked(`http://localhost:${six.port}`)).status).toBe(200);
  });
});

describe("a name", () => {
  const leadsTo = (...addresses: string[]) =>
    createSafeFetch(STRICT, LIMITS, async () =>
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );

  it.each([
    ["loopback", ["127.0.0.1"]],
    ["loopback in IPv6", ["::1"]],
    ["the metadata of clouds", ["169.254.169.254"]],
    ["a zone", ["fe80::1%lo"]],
    ["a mapped address", ["::ffff:10.0.0.1"]],
    ["a public and a private address", ["8.8.8.8", "10.0.0.1"]],
    ["something that is no address", ["example.org"]],
    ["nowhere", []],
  ])("that leads to %s is refused", async (_, addresses) => {
    await expect(leadsTo(...addresses)("https://example.com")).rejects.toThrow(new FetchRefusedError(HOST));
  });

  it("that leads to loopback is permitted with the rest of loopback, but no other private address", async () => {
    const { port } = await serve(echo);
    const to = (address: string) => createSafeFetch(LOCAL, LIMITS, async () => [{ address, family: 4 }]);
    // The server speaks no TLS: the connection was made.
    await expect(to("127.0.0.1")(`https://example.com:${port}`)).rejects.toMatchObject({ reason: "unreachable" });
    await expect(to("10.0.0.1")(`https://example.com:${port}`)).rejects.toThrow(FetchRefusedError);
  });

  it("whose address changes after the check is connected to the checked address", async () => {
    const met: string[] = [];
    const here = await serve(({ socket }) => socket.destroy());
    servers[0]?.on("connection", () => met.push("checked"));
    await serve(({ socket }) => socket.destroy(), { host: "127.0.0.2", port: here.port });
    servers[1]?.on("connection", () => met.push("later"));
    let asked = 0;
    const rebinding = createSafeFetch(LOCAL, LIMITS, async () => [{ address: `127.0.0.${++asked}`, family: 4 }]);
    await expect(rebinding(`https://example.com:${here.port}`)).rejects.toThrow(FetchFailedError);
    expect({ asked, met }).toEqual({ asked: 1, met: ["checked"] });
  });

  it("that does not resolve is a failure without details", async () => {
    const failing = createSafeFetch(STRICT, LIMITS, async () => Promise.reject(new Error("ENOTFOUND 10.9.9.9")));
    await expect(failing("https://example.com")).rejects.toThrow(
      expect.objectContaining({
        name: "FetchFailedError",
        message: "The connection failed or was closed without a response.",
      }),
    );
  });
});

describe("a redirect", () => {
  it.each([
    [301, "POST", "GET", ""],
    [302, "POST", "GET", ""],
    [303, "POST", "GET", ""],
    [303, "PUT", "GET", ""],
    [307, "POST", "POST", "a=b"],
    [308, "POST", "POST", "a=b"],
    [302, "PUT", "PUT", "a=b"],
  ])("of %s changes %s to %s", async (status, method, becomes, body) => {
    const { url } = await serve((request, response) =>
      request.url === "/to" ? echo(request, response) : redirectTo("/to", status)(request, response),
    );
    const headers = { authorization: "Bearer x", "content-type": "text/plain" };
    const came = (await (await local(url, { method, headers, body: "a=b" })).json()) as { headers: object };
    expect(came).toMatchObject({ method: becomes, body, headers: { authorization: "Bearer x" } });
    expect("content-type" in came.headers).toBe(body !== "");
  });

  it("to another origin is followed without credentials", async () => {
    const to = await serve(echo);
    const { url } = await serve(redirectTo(to.url));
    const secret = { authorization: "Bearer x", cookie: "a=b", "x-api-key": "k", "x-custom-secret": "s" };
    const { headers } = (await (await local(url, { headers: { ...secret, accept: "a/b" } })).json()) as {
      headers: object;
    };
    expect(headers).toMatchObject({ accept: "a/b" });
    for (const name of Object.keys(secret)) expect(headers).not.toHaveProperty(name);
  });

  it.each([307, 308])("of %s to another origin does not send a body there", async (status) => {
    let asked = 0;
    const to = await serve((_, response) => response.end(String(++asked)));
    const { url } = await serve(redirectTo(to.url, status));
    await expect(local(url, { method: "POST", body: "code=secret" })).rejects.toThrow(FetchRefusedError);
    expect(asked).toBe(0);
  });

  it.each([
    "http://169.254.169.254/latest/meta-data",
    "https://10.0.0.1/",
    "http://example.com/",
    "https://[::ffff:127.0.0.1]/",
    "file:///etc/passwd",
    "https://user:pass@example.com/",
    "//192.168.0.1/",
    "https://%",
  ])("to %s is refused, and the error contains nothing of its response", async (location) => {
    const { url } = await serve(redirectTo(location));
    const refusal = await local(url).catch((error) => error);
    expect(refusal).toBeInstanceOf(FetchRefusedError);
    expect(refusal.message).not.toMatch(/secret|169|10\.0|user|pass|192|http/);
  });

  it("is followed five times and no more", async () => {
    let asked = 0;
    const { url } = await serve((request, response) => {
      asked++;
      return redirectTo("/")(request, response);
    });
    await expect(local(url)).rejects.toThrow("The server responded with more than 5 redirects.");
    expect(asked).toBe(6);
  });

  it("is returned as a response or an error if the caller requests that", async () => {
    const { url } = await serve(redirectTo("https://10.0.0.1/"));
    const { status, headers } = await local(url, { redirect: "manual" });
    expect([status, headers.get("location")]).toEqual([302, "https://10.0.0.1/"]);
    await expect(local(url, { redirect: "error" })).rejects.toThrow(FetchRefusedError);
  });
});

describe("a limit", () => {
  const hasty = createSafeFetch(LOCAL, { ...LIMITS, timeout_ms: 150 });
  const timeout = expect.objectContaining({
    name: "FetchFailedError",
    reason: "timeout",
    message: "No response within 150 ms.",
  });

  it("of time ends the wait for an answer, a body and a name server", async () => {
    const silent = await serve(() => undefined);
    await expect(hasty(silent.url)).rejects.toThrow(timeout);
    const slow = await serve((_, response) => response.writeHead(200).write("a"));
    await expect(hasty(slow.url)).rejects.toThrow(timeout);
    const nameless = createSafeFetch(LOCAL, { ...LIMITS, timeout_ms: 150 }, () => new Promise(() => undefined));
    await expect(nameless("https://example.com")).rejects.toThrow(timeout);
  });

  it("of time counts all redirects together", async () => {
    const { url } = await serve((request, response) => setTimeout(() => redirectTo("/")(request, response), 60));
    await expect(hasty(url)).rejects.toThrow(timeout);
  });

  it("of size ends a long body, including one without an end, and one that is packed", async () => {
    const big = await serve((_, response) => response.end(Buffer.alloc(LIMITS.max_bytes + 1)));
    await expect(local(big.url)).rejects.toMatchObject({ reason: "too_large" });
    const endless = await serve((_, response) => {
      Readable.from(
        (function* () {
          for (;;) yield Buffer.alloc(65_536);
        })(),
      ).pipe(response);
    });
    await expect(local(endless.url)).rejects.toMatchObject({ reason: "too_large" });
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    expect(bomb.length).toBeLessThan(LIMITS.max_bytes);
    const packed = await serve((_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb));
    await expect(local(packed.url)).rejects.toMatchObject({ reason: "too_large" });
    const just = await serve((_, response) => response.end(Buffer.alloc(LIMITS.max_bytes)));
    expect((await (await local(just.url)).arrayBuffer()).byteLength).toBe(LIMITS.max_bytes);
  });

  it("of size may exclude the body, which may then be slow or without an end", async () => {
    const withoutBody = createSafeFetch(LOCAL, { ...LIMITS, max_bytes: "ignore_body" });
    const slow = await serve((_, response) => response.writeHead(202).write("a"));
    const response = await withoutBody(slow.url);
    expect([response.status, await response.text()]).toEqual([202, ""]);
  });

  it("keeps the reason of the caller's own signal", async () => {
    const { url } = await serve(() => undefined);
    await expect(local(url, { signal: AbortSignal.abort(new Error("no longer wanted")) })).rejects.toThrow(
      "no longer wanted",
    );
  });

  it("an invalid response is a failure whose message does not repeat it", async () => {
    const { url } = await serve(({ socket }) => socket.end("SSH-2.0-secret\r\n"));
    const failure = await local(url).catch((error) => error);
    expect(failure).toMatchObject({ name: "FetchFailedError", reason: "unreachable" });
    expect(failure.message).not.toContain("secret");
  });
});
