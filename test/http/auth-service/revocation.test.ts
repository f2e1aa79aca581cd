import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../../support/databases.ts";
import { openOn } from "../../support/storage.ts";
import { until } from "../../support/until.ts";
import { AuthServiceApi, provider, type User } from "./api.ts";

/** The end of a provider where tokens are taken back (RFC 7009); it answers when it is let to. */
class RevocationServer {
  readonly revoked: string[] = [];
  readonly url: string;
  readonly #server: Server;
  answers: Promise<unknown> = Promise.resolve();

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", async (request, response) => {
      const body = new URLSearchParams(await text(request));
      this.revoked.push(body.get("token") ?? "");
      await this.answers;
      response.end();
    });
  }

  static async start(): Promise<RevocationServer> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new RevocationServer(server);
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

describe.each(databases)("tokens that are deleted on %s", (database) => {
  let api: AuthServiceApi;
  let ada: User;
  let server: RevocationServer;
  beforeAll(async () => {
    server = await RevocationServer.start();
    api = await AuthServiceApi.start(database, { THREADMILL_ALLOW_LOOPBACK_OAUTH: "1" });
    ada = await api.user("ada");
  });
  afterAll(async () => {
    await api.stop();
    await server.stop();
  });

  const at = async (provider_id: string, revocation_url: string) => {
    await ada.call("POST", "/providers", provider(provider_id, { revocation_url }));
    const give = async (access_token: string, more: object = {}) =>
      (await ada.call("POST", "/tokens/import", { provider_id, access_token, ...more })).token_id as string;
    return give;
  };

  it("are revoked at their provider, and the request does not wait for the response", async () => {
    const give = await at("slow", `${server.url}/revoke`);
    const [one] = [await give("one"), await give("two", { refresh_token: "refresh-two" }), await give("three")];
    const gate = Promise.withResolvers<void>();
    server.answers = gate.promise;
    await ada.call("DELETE", `/tokens/${one}`, undefined, 204);
    await ada.call("DELETE", "/tokens?provider_id=slow");
    expect(await ada.call("GET", "/tokens?provider_id=slow")).toEqual([]);
    await until("all are revoked", async () => server.revoked.length === 4);
    expect([...server.revoked].sort()).toEqual(["one", "refresh-two", "three", "two"]);
    gate.resolve();
  });

  it("are revoked as well when their provider is deleted", async () => {
    const give = await at("leaving", `${server.url}/revoke`);
    await give("four");
    await ada.call("DELETE", "/providers/leaving");
    await until("it is revoked", async () => server.revoked.includes("four"));
  });

  it("are deleted even if the provider does not answer", async () => {
    const dead = await RevocationServer.start();
    await dead.stop();
    const give = await at("dead", `${dead.url}/revoke`);
    await give("five");
    await ada.call("DELETE", "/tokens?provider_id=dead");
    expect(await ada.call("GET", "/tokens/exists?provider_id=dead")).toEqual({ has_token: false });
  });

  it("are deleted even if they cannot be decrypted", async () => {
    const give = await at("broken", `${server.url}/revoke`);
    const token_id = await give("six");
    const storage = openOn(api.service.database);
    await storage.write((tx) =>
      tx.run(tx.k.updateTable("oauth_tokens").set({ secret: "not sealed" }).where("token_id", "=", token_id)),
    );
    await storage.close();
    await give("seven");
    await ada.call("DELETE", "/tokens?provider_id=broken");
    expect(await ada.call("GET", "/tokens?provider_id=broken")).toEqual([]);
    await until("the other one is revoked", async () => server.revoked.includes("seven"));
    expect(server.revoked).not.toContain("six");
  });
});
