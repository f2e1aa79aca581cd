import { beforeAll, describe, expect, it } from "vitest";
import { type Anything, apiOf, type GetService, plain, query, unique } from "./api.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function datasetScenarios(service: GetService): void {
  const api = apiOf(service);

  /** Until a stamp that is made now is later than this one. */
  const clockPast = async (stamp: number) => {
    while (Date.now() <= stamp) await api.get("/datasets?limit=1");
  };

  describe("datasets are sorted", () => {
    const mark = unique();
    let made: Anything[];
    beforeAll(async () => {
      const uploads: [string, number, string[]][] = [
        ["banana", 2, ["2026-01-01T00:00:03Z"]],
        ["Apple", 5, ["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2025-01-01T00:00:00Z"]],
        ["apple", 0, ["2026-01-01T00:00:05Z", "2026-01-01T00:00:00Z"]],
      ];
      for (const [name, n, starts] of uploads) {
        const { results } = plain(n);
        for (const experiment_start_time of starts)
          await api.upload(
            plain(0, {
              dataset_name: `${name} ${mark}`,
              experiment_start_time,
              results: starts[0] === experiment_start_time ? inside(results, experiment_start_time) : [],
            }),
          );
      }
      const empty = await api.ok("POST", "/datasets", { name: `éclair ${mark}` });
      await api.ok("POST", "/examples", { dataset_id: empty.id, inputs: {} });
      const last = await api.ok("POST", "/datasets", { name: `Zebra ${mark}`, data_type: "chat" });
      await clockPast(Date.parse(last.modified_at));
      await api.ok("PATCH", `/datasets/${empty.id}`, { description: "touched last" });
      made = await api.get(`/datasets${query({ name_contains: mark })}`);
      expect(made).toHaveLength(5);
    });

    /** Rows whose times are those of the experiment's start. */
    const inside = (rows: ReturnType<typeof plain>["results"], at: string) =>
      rows.map((row) => ({ ...row, start_time: at, end_time: at }));

    const names = (datasets: Anything[]) => datasets.map(({ name }) => name.split(" ")[0]);
    const found = async (more: Parameters<typeof query>[0]) =>
      names(await api.get(`/datasets${query({ name_contains: mark, ...more })}`));

    const times = (at: string | null) => (at === null ? null : Date.parse(at));
    const columns: [string, (dataset: Anything) => number | string | null, string[]][] = [
      ["name", ({ name }) => name, ["éclair", "banana", "apple", "Zebra", "Apple"]],
      ["created_at", ({ created_at }) => times(created_at), ["Zebra", "éclair", "apple", "Apple", "banana"]],
      ["modified_at", ({ modified_at }) => times(modified_at), ["éclair", "Zebra", "apple", "Apple", "banana"]],
      ["example_count", ({ example_count }) => example_count, ["Apple", "banana", "éclair", "Zebra", "apple"]],
      ["session_count", ({ session_count }) => session_count, ["Apple", "apple", "banana", "Zebra", "éclair"]],
      [
        "last_session_start_time",
        ({ last_session_start_time: at }) => times(at),
        ["apple", "banana", "Apple", "Zebra", "éclair"],
      ],
    ];

    it.each(columns)("by %s, both ways", async (sort_by, of, expected) => {
      expect(await found({ sort_by })).toEqual(expected);
      const descending = await found({ sort_by, sort_by_desc: true });
      expect(descending).toEqual(expected);
      const ascending = await api.get(`/datasets${query({ name_contains: mark, sort_by, sort_by_desc: false })}`);
      const values = ascending.map(of);
      expect(values).toEqual(values.toSorted(byValue));
      expect(names(ascending).toSorted()).toEqual(expected.toSorted());
    });

    const byValue = (a: number | string | null, b: number | string | null) => {
      if (a === b) return 0;
      if (a === null || b === null) return a === null ? -1 : 1;
      return a < b ? -1 : 1;
    };

    it("by their last experiment unless asked otherwise, and shown page by page", async () => {
      expect(await found({})).toEqual(["apple", "banana", "Apple", "Zebra", "éclair"]);
      expect(await found({ limit: 2, offset: 1 })).toEqual(["banana", "Apple"]);
      expect(await found({ limit: 3, offset: 3 })).toEqual(["Zebra", "éclair"]);
    });

    it("by their types", async () => {
      expect(await found({ data_type: "chat" })).toEqual(["Zebra"]);
      expect(await found({ data_type: ["chat", "llm"] })).toEqual(["Zebra"]);
      expect(await found({ data_type: ["kv", "chat"] })).toHaveLength(5);
      const answer = await api.send("GET", "/datasets?data_type=table");
      expect([answer.status, answer.body.detail[0].loc.slice(0, 2)]).toEqual([422, ["query", "data_type"]]);
    });
  });

  describe("a dataset", () => {
    it("counts as changed when its examples are", async () => {
      const { id } = await api.ok("POST", "/datasets", { name: unique() });
      const stamp = async () => Date.parse((await api.get(`/datasets/${id}`)).modified_at);
      const stamps = [await stamp()];
      const later = async (change: () => Promise<unknown>) => {
        await clockPast(stamps.at(-1) as number);
        await change();
        stamps.push(await stamp());
      };
      let example: Anything;
      await later(async () => {
        example = await api.ok("POST", "/examples", { dataset_id: id, inputs: { n: 1 } });
      });
      await later(() => api.ok("PATCH", `/examples/${example.id}`, { inputs: { n: 2 } }));
      await later(() => api.ok("DELETE", `/examples/${example.id}`));
      expect(stamps).toEqual([...new Set(stamps)].sort((a, b) => a - b));
    });

    it("keeps the omitted fields when it changes, and clears those that are null", async () => {
      const made = await api.ok("POST", "/datasets", {
        name: unique(),
        description: "d",
        inputs_schema_definition: { type: "object" },
        transformations: [],
        metadata: { a: 1 },
      });
      const modified_at = expect.any(String);
      expect(await api.ok("PATCH", `/datasets/${made.id}`, {})).toEqual({ ...made, modified_at });
      const nulls = {
        description: null,
        inputs_schema_definition: null,
        transformations: null,
        metadata: null,
        name: null,
      };
      expect(await api.ok("PATCH", `/datasets/${made.id}`, nulls)).toEqual({
        ...made,
        ...nulls,
        name: made.name,
        modified_at,
      });
    });

    it("has a baseline among its own experiments, until it is removed or the experiment is deleted", async () => {
      const dataset_name = unique();
      const [one, two] = [await api.upload(plain(1, { dataset_name })), await api.upload(plain(1, { dataset_name }))];
      const elsewhere = await api.upload(plain(1));
      const path = `/datasets/${one.dataset.id}`;
      const baseline = async () => (await api.get(path)).baseline_experiment_id;
      const set = (baseline_experiment_id: string | null) => api.send("PATCH", path, { baseline_experiment_id });
      expect(await baseline()).toBeNull();
      expect((await set(one.experiment.id)).body.baseline_experiment_id).toBe(one.experiment.id);
      expect((await set(elsewhere.experiment.id)).status).toBe(400);
      expect((await set(unique())).status).toBe(404);
      expect((await api.ok("PATCH", path, { description: "kept" })).baseline_experiment_id).toBe(one.experiment.id);
      await set(null);
      expect(await baseline()).toBeNull();
      await set(two.experiment.id);
      await api.ok("DELETE", `/sessions/${one.experiment.id}`);
      expect(await baseline()).toBe(two.experiment.id);
      await api.ok("DELETE", `/sessions/${two.experiment.id}`);
      expect(await baseline()).toBeNull();
    });

    it("is shared under an unguessable token until sharing ends", async () => {
      const { dataset } = await api.upload(plain(0));
      const path = `/datasets/${dataset.id}/share`;
      expect(await api.get(path)).toBeNull();
      const shared = await api.ok("PUT", path);
      expect(shared).toEqual({ dataset_id: dataset.id, share_token: expect.stringMatching(UUID) });
      // Version 4: all of it is chance.
      expect(shared.share_token[14]).toBe("4");
      expect(await api.ok("PUT", `${path}?share_projects=true`)).toEqual(shared);
      await api.ok("DELETE", path);
      expect(await api.get(path)).toBeNull();
    });
  });
}
