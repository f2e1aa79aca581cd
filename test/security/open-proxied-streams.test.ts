import { EventEmitter, once } from "node:events";
import { request, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiKeys } from "../../src/access/keys/api-keys.ts";
import { SCOPES } from "../../src/platform/contract/caller.ts";
import { Instance } from "../control/router/instance.ts";
import { World } from "../control/router/world.ts";
import { databases } from "../support/databases.ts";

/** What was opened at a deployment with a key ends with the key: at the client, and at the instance. */

const OPERATOR = { tenant_id: "00000000-0000-0000-0000-000000000001", user_id: "root", scopes: SCOPES };
const MAX_END_MS = 1_900;

describe.each(databases)("through the router on %s", (database) => {
  let world: World;
  let instance: Instance;
  let path: string;
  const opened = new EventEmitter();
  beforeAll(async () => {
    world = await World.open(database);
    instance = await Instance.start(
      "instance",
      ({ url = "" }, response) => {
        if (url.startsWith("/stream"))
          response.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
        opened.emit("opened", response);
      },
      (_, socket) => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
        opened.emit("opened", socket);
      },
    );
    ({ path } = await world.deployed(instance.upstream));
  });
  afterAll(async () => {
    await world.close();
    await instance.stop();
  });
  const newKey = async () => {
    const { id, key } = await world.newKey();
    return { id, headers: { "x-api-key": key } };
  };
  type Key = Awaited<ReturnType<typeof newKey>>;

  /** Revokes a key, and waits until what was opened with it has ended at both sides. */
  async function endOf(key: Key, { closed }: { closed: Promise<unknown> }): Promise<void> {
    await new ApiKeys({ database: world.storage.database }).revoke(OPERATOR, key.id);
    const revoked_at = performance.now();
    await closed;
    expect(performance.now() - revoked_at).toBeLessThan(MAX_END_MS);
  }

  /** Asks for something that does not end, which the instance has begun to answer. */
  async function open(key: Key, at: string, more: Record<string, string> = {}) {
    const arrived = once(opened, "opened") as Promise<[ServerResponse | Duplex]>;
    const headers = { ...key.headers, ...more };
    const sent = request({ port: world.process.port, path: `${path}${at}`, agent: false, headers });
    const errors: Error[] = [];
    const onError = (error: Error) => errors.push(error);
    sent.on("error", onError).end();
    sent.on("response", (answer) => answer.on("error", onError).resume());
    const answered = once(sent, at === "/socket" ? "upgrade" : "response");
    const [of_instance] = await arrived;
    const closed = [once(of_instance, "close"), new Promise((resolve) => sent.once("close", resolve))];
    if (at !== "/silent") {
      const [, socket] = (await answered) as [unknown, Duplex?];
      if (socket) closed.push(once(socket, "close"));
    } else answered.catch(() => undefined);
    return { closed: Promise.all(closed), errors };
  }

  it.each([
    ["a stream", "/stream"],
    ["a request that has no answer yet", "/silent"],
  ])("%s ends when its key is revoked, and does not look as if it were complete", async (_, at) => {
    const key = await newKey();
    const { closed, errors } = await open(key, at);
    await endOf(key, { closed });
    expect(errors).toEqual([expect.objectContaining({ code: "ECONNRESET" })]);
  });

  it("a WebSocket ends when its key is revoked", async () => {
    const key = await newKey();
    await endOf(key, await open(key, "/socket", { connection: "Upgrade", upgrade: "websocket" }));
  });

  it("a stream of another key of the same user continues", async () => {
    const [mine, other] = [await newKey(), await newKey()];
    const stream = await open(mine, "/stream");
    await endOf(other, await open(other, "/stream"));
    expect(stream.errors).toEqual([]);
    await endOf(mine, stream);
  });
});
