import { afterAll, afterEach, describe, expect, it } from "vitest";
import { startThreadmill, type Threadmill } from "../../src/main.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { startPgvector } from "../support/pgvector.ts";
import { execute } from "../support/postgres.ts";
import { Scenario, type Wire } from "./scenario.ts";
import { STORE_CONFIG, searchScenarios } from "./store-search-scenarios.ts";

const server = await startPgvector();

const INSTALL = "create extension vector";

describe.skipIf(!server)("semantic search with pgvector", () => {
  afterAll(() => server?.stop());

  /** By default, each workspace with a vector is searched in Postgres, not only those with hundreds of megabytes of them. */
  const start = (max_loaded_vector_bytes = 0) => {
    const options = { admin: server?.url as string, config: STORE_CONFIG, intervals: { max_loaded_vector_bytes } };
    return Scenario.start("postgres", {}, options);
  };

  describe("as with the worker thread", () => {
    searchScenarios(async () => {
      const started = await start();
      await execute(started.service.database.url as string, INSTALL);
      return started;
    });
  });

  describe("in a database", () => {
    let api: Scenario;
    let service: Threadmill;
    afterEach(() => api.stop());

    async function begin(statement = "", ...options: Parameters<typeof start>): Promise<void> {
      api = await start(...options);
      service = api.service.threadmill;
      await run(statement);
    }
    const run = (statement: string) => execute(api.service.database.url as string, statement);

    const call = async ({ fetch }: Threadmill, method: string, path: string, body: object) => {
      const headers = { "content-type": "application/json" };
      const request = new Request(`http://localhost${path}`, { method, headers, body: JSON.stringify(body) });
      const response = await fetch(request);
      const text = await response.text();
      if (!response.ok) throw new Error(`${path}: ${text}`);
      return text;
    };
    const put = (at: Threadmill, key: string, title: string, index?: false) =>
      call(at, "PUT", "/store/items", { namespace: ["n"], key, value: { title }, index });
    const remove = (key: string) => call(service, "DELETE", "/store/items", { namespace: ["n"], key });
    /** Answers keys and scores in percent. */
    const search = async (at: Threadmill, query: string, limit = 10): Promise<string[]> => {
      const found = await call(at, "POST", "/store/items/search", { namespace_prefix: ["n"], query, limit });
      return JSON.parse(found).items.map(({ key, score }: Wire) => `${key} ${Math.round(score * 100)}`);
    };
    /** The number of vectors that Postgres searches; undefined before it has searched any. */
    const copies = async (): Promise<number | undefined> => {
      const [table] = await run("select to_regclass('store_embeddings') as name");
      if (table?.name === null) return undefined;
      return Number((await run("select count(embedding) as count from store_embeddings"))[0]?.count);
    };

    it("searches while the extension is installed, dropped and installed again", async () => {
      await begin();
      await put(service, "a", "cat");
      await put(service, "b", "cat dog");
      expect(await search(service, "cat")).toEqual(["a 100", "b 71"]);
      expect(await copies()).toBeUndefined();
      await run(INSTALL);
      expect(await search(service, "cat")).toEqual(["a 100", "b 71"]);
      expect(await copies()).toBe(2);
      await run("drop extension vector cascade");
      await put(service, "c", "dog");
      await remove("b");
      expect(await search(service, "dog")).toEqual(["c 100", "a 0"]);
      await run(INSTALL);
      await put(service, "a", "car");
      expect(await search(service, "car")).toEqual(["a 100", "c 0"]);
      expect(await copies()).toBe(2);
    });

    it("searches in memory until the vectors of the workspace exceed a limit", async () => {
      const vector_bytes = 12;
      await begin(INSTALL, 2 * vector_bytes);
      await put(service, "a", "cat");
      await put(service, "b", "cat");
      await put(service, "b", "dog");
      expect(await search(service, "cat")).toEqual(["a 100", "b 0"]);
      await put(service, "a", "cat dog");
      expect(await search(service, "cat")).toEqual(["a 71", "b 0"]);
      expect(await copies()).toBeUndefined();
      await put(service, "c", "cat");
      expect(await search(service, "cat")).toEqual(["c 100", "a 71", "b 0"]);
      expect(await copies()).toBe(3);
    });

    it("finds the same as a process that searches in its own memory", async () => {
      await begin(INSTALL);
      const config = { ...api.service.config, max_loaded_vector_bytes: 2 ** 28 };
      const other = await startThreadmill(config, createLog("silent"));
      try {
        for (const word of ["dog", "cat", "dog"]) {
          const writes = Array.from({ length: 10 }, (_, n) => put(n % 2 ? service : other, `k${n}`, word));
          await Promise.all(writes);
          const expected = Array.from({ length: 10 }, (_, n) => `k${n} 100`);
          for (const at of [service, other]) expect((await search(at, word)).toSorted()).toEqual(expected);
        }
      } finally {
        await other.stop();
      }
    });

    it("finds what was committed before the search, however many write at once", async () => {
      await begin(INSTALL);
      const writeAndSearch = async (client: number) => {
        for (let n = 0; n < 15; n++) {
          await put(service, `${client}-${n}`, "cat");
          expect(await search(service, "cat", 1_000)).toContain(`${client}-${n} 100`);
          if (n % 3 === 0) await remove(`${client}-${n}`);
        }
      };
      await Promise.all(Array.from({ length: 8 }, (_, client) => writeAndSearch(client)));
      expect(await search(service, "cat", 1_000)).toHaveLength(80);
      expect(await copies()).toBe(80);
    });

    it("ignores vectors of another length, and those of other workspaces", async () => {
      await begin(INSTALL);
      await put(service, "short", "cat", false);
      await put(service, "a", "cat");
      await run(
        `insert into store_vectors (tenant_id, namespace, key, vector)
         select 'other', namespace, key, vector from store_vectors
         union all select tenant_id, namespace, 'short', '\\x0000803f' from store_vectors`,
      );
      expect(await search(service, "cat")).toEqual(["a 100"]);
      expect(await copies()).toBe(2);
    });

    it("copies thousands of vectors that were stored before", async () => {
      await begin();
      await put(service, "a", "cat");
      await run(
        `insert into store_items (tenant_id, namespace, key, value, created_at, updated_at)
         select tenant_id, namespace, 'k' || n, value, created_at, updated_at from store_items, generate_series(1, 2000) n;
         insert into store_vectors (tenant_id, namespace, key, vector)
         select tenant_id, namespace, 'k' || n, vector from store_vectors, generate_series(1, 2000) n`,
      );
      await run(INSTALL);
      const found = await Promise.all(Array.from({ length: 4 }, () => search(service, "cat", 1_000)));
      expect(found.map(({ length }) => length)).toEqual([1_000, 1_000, 1_000, 1_000]);
      expect(await copies()).toBe(2_001);
    });

    it("searches in memory while the table cannot be created without waiting", async () => {
      await begin(INSTALL);
      await put(service, "a", "cat");
      const locked = run("begin; lock table store_vectors in share mode; select pg_sleep(2)");
      const locks = "select 1 from pg_locks where relation = 'store_vectors'::regclass and mode = 'ShareLock'";
      await expect.poll(() => run(locks)).toHaveLength(1);
      expect(await search(service, "cat")).toEqual(["a 100"]);
      expect(await copies()).toBeUndefined();
      await locked;
      expect(await search(service, "cat")).toEqual(["a 100"]);
      expect(await copies()).toBe(1);
    });
  });
});
