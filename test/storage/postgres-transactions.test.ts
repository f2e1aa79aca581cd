import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database, Tx } from "../../src/platform/database/database.ts";
import { openPostgres } from "../../src/platform/database/postgres/postgres.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.ts";

describe.runIf(databases.includes("postgres"))("a transaction on Postgres", () => {
  let at: TestDatabase;
  let proxy: TcpProxy;
  let database: Database;
  beforeAll(async () => {
    at = await createDatabase("postgres");
    proxy = await startProxy(at.url as string);
    database = openPostgres({ url: proxy.url, log: createLog("silent") });
    await database.migrate((tx) => tx.run(sql`create table numbers (n integer primary key)`.compile(tx.k)));
  });
  beforeEach(async () => {
    proxy.change((packet) => packet);
    await database.write((tx) => tx.run(sql`delete from numbers`.compile(tx.k)));
  });
  afterAll(async () => {
    await database.close();
    await proxy.close();
    await at.drop();
  });

  const insert = (tx: Tx, n: number) => tx.enqueue(sql`insert into numbers values (${n})`.compile(tx.k));
  const stored = async ({ all, k }: Tx = database.read) =>
    (await all(sql<{ n: number }>`select n from numbers order by n`.compile(k))).map(({ n }) => n);

  it("executes statements that are not awaited in their order, before those after them", async () => {
    const read = await database.write(async (tx) => {
      for (const n of [3, 1, 2]) await insert(tx, n);
      await tx.enqueue(sql`delete from numbers where n = 3`.compile(tx.k));
      return stored(tx);
    });
    expect(read).toEqual([1, 2]);
    expect(await stored()).toEqual([1, 2]);
  });

  it("sends them together", async () => {
    // Opens a connection.
    await stored();
    let packets = 0;
    proxy.change((packet) => {
      if (packet.includes("numbers")) packets++;
      return packet;
    });
    await database.write(async (tx) => {
      for (let n = 0; n < 20; n++) await insert(tx, n);
    });
    expect(packets).toBe(1);
    expect(await stored()).toHaveLength(20);
  });

  it("fails with the reason of the first that failed, and changes nothing", async () => {
    const fail = async (tx: Tx) => {
      await insert(tx, 1);
      await insert(tx, 1);
      await insert(tx, 2);
    };
    const duplicate = { code: "23505" };
    await expect(database.write(fail)).rejects.toMatchObject(duplicate);
    const reads = database.write(async (tx) => {
      await fail(tx);
      return stored(tx);
    });
    await expect(reads).rejects.toMatchObject(duplicate);
    expect(await stored()).toEqual([]);
  });

  it("changes nothing if it could not begin", async () => {
    const breakBegin = (packet: Buffer) => {
      const start = packet.indexOf("begin\0");
      if (start >= 0) packet.write("BROKE", start);
      return packet;
    };
    for (const work of [
      (tx: Tx) => insert(tx, 1),
      async (tx: Tx) => {
        await tx.run(sql`insert into numbers values (1)`.compile(tx.k));
      },
      async (tx: Tx) => {
        await stored(tx);
        await insert(tx, 1);
      },
      async (tx: Tx) => {
        await tx.enqueue(sql`select n from numbers for update`.compile(tx.k));
        await insert(tx, 1);
      },
    ]) {
      proxy.change(breakBegin);
      await expect(database.write(work)).rejects.toThrow(/syntax error/);
      proxy.change((packet) => packet);
      expect(await stored()).toEqual([]);
      await database.write(work);
      expect(await stored()).toEqual([1]);
      await database.write((tx) => tx.run(sql`delete from numbers`.compile(tx.k)));
    }
  });
});
