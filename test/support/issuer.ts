import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

export const AUDIENCE = "threadmill";

type Keys = Awaited<ReturnType<typeof generateKeyPair>>;

/** An OpenID provider as far as this service looks at one: its document and its keys. */
export class Issuer {
  readonly #server: Server;
  readonly url: string;
  keys!: Keys;
  readonly kid = "one";
  /** What the document says besides, or instead. */
  document: object = {};
  isDown = false;
  /** Paths that were asked for. */
  asked: string[] = [];

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<Issuer> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const issuer = new Issuer(server);
    issuer.keys = await generateKeyPair("RS256", { extractable: true });
    server.on("request", async (request, response) => {
      issuer.asked.push(request.url ?? "");
      if (issuer.isDown) return response.writeHead(503).end();
      const jwk = { ...(await exportJWK(issuer.keys.publicKey)), kid: issuer.kid, use: "sig" };
      const document = { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks`, ...issuer.document };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(request.url === "/jwks" ? { keys: [jwk] } : document));
    });
    return issuer;
  }

  /** A token of this issuer, with other claims where they are given. */
  token(claims: Record<string, unknown> = {}, header: { kid?: string; crit?: string[]; x?: 1 } = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({ iss: this.url, aud: AUDIENCE, sub: "alice", iat: now, exp: now + 60, ...claims })
      .setProtectedHeader({ alg: "RS256", kid: this.kid, ...header })
      .sign(this.keys.privateKey, { crit: { x: true } });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
