import { describe, expect, it } from "vitest";
import { type NewClient, unique } from "./support.ts";

export function storeScenarios(newClient: NewClient): void {
  describe("the store", () => {
    it("keeps, finds, lists and deletes items", async () => {
      const { store } = newClient();
      const namespace = ["users", unique()];
      await store.putItem(namespace, "a", { kind: "note", stars: 3 }, { ttl: 60, index: false });
      await store.putItem([...namespace, "old"], "b", { kind: "note", stars: 1 });
      expect(await store.getItem(namespace, "a", { refreshTtl: true })).toMatchObject({
        namespace,
        key: "a",
        value: { kind: "note", stars: 3 },
        createdAt: expect.any(String),
      });
      expect(await store.getItem(namespace, "missing")).toBeNull();
      const { items } = await store.searchItems(namespace, { filter: { kind: "note", stars: { $gte: 2 } }, limit: 5 });
      expect(items.map(({ key }) => key)).toEqual(["a"]);
      expect(await store.listNamespaces({ prefix: namespace, maxDepth: 3 })).toEqual({
        namespaces: [namespace, [...namespace, "old"]],
      });
      await store.deleteItem(namespace, "a");
      expect(await store.getItem(namespace, "a")).toBeNull();
    });
  });
}
