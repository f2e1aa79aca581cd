import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { type Anything, apiOf, plain, query, unique } from "./query/api.ts";

describe.each(databases)("splits of a dataset on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());
  const api = apiOf(() => service);

  /** A dataset with an example for each of the given splits. */
  const datasetOf = async (...splits: (string | string[] | undefined)[]) => {
    const { id } = await api.ok("POST", "/datasets", { name: unique() });
    const bodies = splits.map((split, n) => ({ dataset_id: id, inputs: { n }, split }));
    const examples = await api.ok("POST", "/examples/bulk", bodies);
    return { id: id as string, ids: examples.map((example: Anything) => example.id) as string[] };
  };
  const namesOf = async (id: string) =>
    (await api.get(`/examples${query({ dataset: id, order: "id" })}`))
      .toSorted((a: Anything, b: Anything) => a.inputs.n - b.inputs.n)
      .map(({ metadata }: Anything) => metadata.dataset_split);
  const numbersIn = async (id: string, ...splits: string[]) =>
    (await api.get(`/examples${query({ dataset: id, splits })}`)).map(({ inputs }: Anything) => inputs.n).sort();

  it("are those of its examples, and `base` for an example without one", async () => {
    const { id } = await datasetOf("train", ["train", "hard"], undefined, []);
    expect(await api.get(`/datasets/${id}/splits`)).toEqual(["base", "hard", "train"]);
    expect(await namesOf(id)).toEqual([["train"], ["train", "hard"], ["base"], ["base"]]);
    expect(await numbersIn(id, "train")).toEqual([0, 1]);
    expect(await numbersIn(id, "base")).toEqual([2, 3]);
    expect(await numbersIn(id, "base", "hard")).toEqual([1, 2, 3]);
    const { dataset } = await api.upload(plain(2));
    expect(await api.get(`/datasets/${dataset.id}/splits`)).toEqual(["base"]);
    const empty = await datasetOf();
    expect(await api.get(`/datasets/${empty.id}/splits`)).toEqual([]);
  });

  it("get examples and lose them, and an example that leaves its last split is in `base` again", async () => {
    const { id, ids } = await datasetOf("train", undefined);
    const put = (body: object) => api.ok("PUT", `/datasets/${id}/splits`, body);
    expect(await put({ split_name: "test", examples: ids })).toEqual(["base", "test", "train"]);
    expect(await namesOf(id)).toEqual([
      ["train", "test"],
      ["base", "test"],
    ]);
    expect(await put({ split_name: "base", examples: ids, remove: true })).toEqual(["test", "train"]);
    expect(await put({ split_name: "test", examples: [ids[1]], remove: true })).toEqual(["base", "test", "train"]);
    expect(await namesOf(id)).toEqual([["train", "test"], ["base"]]);
  });

  it("change in a new version of the dataset, and only if an example changes", async () => {
    const { id, ids } = await datasetOf("train", undefined);
    const [before] = await api.get(`/datasets/${id}/versions`);
    await api.ok("PUT", `/datasets/${id}/splits`, { split_name: "train", examples: [ids[0]] });
    expect(await api.get(`/datasets/${id}/versions`)).toHaveLength(1);
    await api.ok("PUT", `/datasets/${id}/splits`, { split_name: "train", examples: ids });
    const versions = await api.get(`/datasets/${id}/versions`);
    expect(versions).toHaveLength(2);
    const splitsAt = (as_of: string) => api.get(`/datasets/${id}/splits${query({ as_of })}`);
    await api.ok("PUT", `/datasets/${id}/splits`, { split_name: "base", examples: ids, remove: true });
    expect(await splitsAt(before.as_of)).toEqual(["base", "train"]);
    expect(await splitsAt("latest")).toEqual(["train"]);
  });

  it("are not changed with an unknown example, or one of another dataset", async () => {
    const { id, ids } = await datasetOf("train");
    const elsewhere = await datasetOf(undefined);
    for (const other of [unique(), elsewhere.ids[0] as string]) {
      const answer = await api.send("PUT", `/datasets/${id}/splits`, { split_name: "x", examples: [...ids, other] });
      expect([answer.status, answer.body.detail]).toEqual([404, "Example not found"]);
    }
    expect(await namesOf(id)).toEqual([["train"]]);
    expect((await api.send("GET", `/datasets/${unique()}/splits`)).status).toBe(404);
    const named = await api.send("PUT", `/datasets/${id}/splits`, { split_name: "", examples: ids });
    expect([named.status, named.body.detail[0].loc]).toEqual([422, ["body", "split_name"]]);
  });

  it("and metadata of many examples change by operations, and what is not found is skipped", async () => {
    const { id, ids } = await datasetOf("train", undefined);
    const [one, two] = ids as [string, string];
    const unknown = unique();
    const patch = (operations: object[], example_ids = ids) =>
      service.request("PATCH", `/v1/platform/datasets/${id}/examples/metadata`, { example_ids, operations });
    const answer = await patch(
      [
        { key: "dataset_split", operation: "array_add", values: ["new"] },
        { key: "dataset_split", operation: "ARRAY_REMOVE", values: ["train", "base"] },
        { key: "level", operation: "SET", value: { n: 1 } },
        { key: "tags", operation: "ARRAY_ADD", values: ["a", "b", "a"] },
      ],
      [one, unknown, two],
    );
    expect([answer.status, answer.body.statuses.map(({ status }: Anything) => status)]).toEqual([
      207,
      ["UPDATED", "NOT_FOUND", "UPDATED"],
    ]);
    const metadata = { level: { n: 1 }, tags: ["a", "b"], dataset_split: ["new"] };
    for (const example_id of ids) expect((await api.get(`/examples/${example_id}`)).metadata).toEqual(metadata);
    const wrong = await patch([{ key: "dataset_split", operation: "SET", value: 7 }]);
    expect([wrong.status, wrong.body.detail[0].loc]).toEqual([422, ["body", "operations"]]);
    const large = await patch([{ key: "k", operation: "SET", value: "x".repeat(70_000) }]);
    expect([large.status, large.body.detail[0].msg]).toEqual([422, expect.stringContaining("65536 bytes")]);
    expect((await api.get(`/examples/${one}`)).metadata).toEqual(metadata);
  });
});
