import { describe, expect, it } from "vitest";
import {
  type Anything,
  conflict,
  type GetTarget,
  graded,
  listed,
  notFound,
  refused,
  TIME,
  UUID,
  unique,
  upload,
} from "./support.ts";

export function exampleScenarios(target: GetTarget): void {
  const newDataset = async () => (await target().client.createDataset(unique())).id;
  const idsOf = async (query: Parameters<ReturnType<GetTarget>["client"]["listExamples"]>[0]) =>
    (await listed(target().client.listExamples(query))).map(({ id }) => id);

  /** A dataset of `n` examples, each with its number. */
  const datasetOf = async (n: number) => {
    const datasetId = await newDataset();
    const exampleIds = Array.from({ length: n }, unique);
    await target().client.uploadExamplesMultipart(
      datasetId,
      exampleIds.map((id, number) => ({ id, inputs: { number } })),
    );
    return { datasetId, exampleIds };
  };

  describe("an example", () => {
    it("of an upload is read with its expected outputs", async () => {
      const { client } = target();
      const body = graded(2);
      const { dataset } = await upload(target(), body);
      const [, row] = body.results;
      expect(await client.readExample(row?.row_id as string)).toEqual({
        id: row?.row_id,
        dataset_id: dataset.id,
        name: "#2",
        inputs: row?.inputs,
        outputs: row?.expected_outputs,
        metadata: { dataset_split: ["base"] },
        source_run_id: null,
        created_at: TIME,
        modified_at: TIME,
      });
    });

    it("is created with all given fields", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const sourceRunId = unique();
      const example = await client.createExample(
        { question: "1 + 1?" },
        { answer: 2 },
        { datasetId, exampleId: unique(), metadata: { level: 1 }, split: ["easy", "tiny"], sourceRunId },
      );
      expect(example).toEqual({
        id: UUID,
        dataset_id: datasetId,
        name: "#1",
        inputs: { question: "1 + 1?" },
        outputs: { answer: 2 },
        metadata: { level: 1, dataset_split: ["easy", "tiny"] },
        source_run_id: sourceRunId,
        created_at: TIME,
        modified_at: TIME,
      });
      expect(await client.readExample(example.id)).toEqual(example);
      const plain = await client.createExample({ dataset_id: datasetId, inputs: { "with. dots": "é\u2028" } });
      expect(plain).toMatchObject({ name: "#2", inputs: { "with. dots": "é\u2028" }, outputs: null });
      expect(plain.metadata).toEqual({ dataset_split: ["base"] });
      expect((await client.readDataset({ datasetId })).example_count).toBe(2);
    });

    it("is changed in the given fields, and keeps the others", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const { name: datasetName } = await client.readDataset({ datasetId });
      const made = await client.createExample({ a: 1 }, { b: 1 }, { datasetName, metadata: { m: 1 }, split: "train" });
      expect(await client.updateExample(made.id, { inputs: { a: 2 } })).toEqual({
        count: 1,
        example_ids: [made.id],
        as_of: TIME,
      });
      const changed = await client.readExample(made.id);
      expect(changed).toEqual({ ...made, inputs: { a: 2 }, modified_at: TIME });
      await client.updateExample({ id: made.id, outputs: { b: 2 }, metadata: { m: 2 }, split: ["test"] });
      expect(await client.readExample(made.id)).toMatchObject({
        inputs: { a: 2 },
        outputs: { b: 2 },
        metadata: { m: 2, dataset_split: ["test"] },
      });
    });

    it("keeps its splits when it is written back unchanged", async () => {
      const { client } = target();
      const made = await client.createExample({ a: 1 }, { b: 1 }, { datasetId: await newDataset(), split: "train" });
      const { metadata } = await client.readExample(made.id);
      await client.updateExample(made.id, { metadata, split: "test" });
      expect((await client.readExample(made.id)).metadata).toEqual({ dataset_split: ["test"] });
      await client.updateExample(made.id, { metadata: { ...metadata, m: 1 } });
      expect((await client.readExample(made.id)).metadata).toEqual({ m: 1, dataset_split: ["train"] });
      await client.updateExample(made.id, { metadata: { m: 2 } });
      expect((await client.readExample(made.id)).metadata).toEqual({ m: 2, dataset_split: ["train"] });
      await client.updateExample(made.id, { split: [] });
      expect((await client.readExample(made.id)).metadata).toEqual({ m: 2, dataset_split: ["base"] });
    });

    it("that does not exist is not found", async () => {
      const { client } = target();
      const update = { id: unique(), dataset_id: await newDataset(), inputs: {} };
      await expect(client.readExample(unique())).rejects.toEqual(notFound("Example"));
      await expect(client.deleteExample(unique())).rejects.toEqual(notFound("Example"));
      await expect(client.updateExample(update)).rejects.toEqual(notFound("Example"));
      const { exampleIds } = await datasetOf(1);
      const elsewhere = { id: exampleIds[0] as string, dataset_id: update.dataset_id, inputs: { moved: true } };
      await expect(client.updateExample(elsewhere)).rejects.toEqual(notFound("Example"));
      expect((await client.readExample(elsewhere.id)).inputs).toEqual({ number: 0 });
    });

    it("is not created under a taken id, or in a dataset of uploads", async () => {
      const { client } = target();
      const { datasetId, exampleIds } = await datasetOf(1);
      const [exampleId] = exampleIds;
      const taken = client.createExample({ a: 1 }, { b: 1 }, { datasetId, exampleId });
      await expect(taken).rejects.toEqual(conflict(exampleId as string));
      const { dataset } = await upload(target(), graded(1));
      const managed = client.createExample({ a: 1 }, { b: 1 }, { datasetId: dataset.id });
      await expect(managed).rejects.toEqual(refused(400, "upload results to add examples"));
      expect(await idsOf({ datasetId })).toEqual([exampleId]);
    });
  });

  describe("examples", () => {
    it("are created together, in both of the client's ways", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const exampleIds = [unique(), unique(), unique()];
      const first = await client.createExamples({
        datasetId,
        inputs: [{ n: 0 }, { n: 1 }, { n: 2 }],
        outputs: [{ m: 0 }, { m: 1 }, { m: 2 }],
        metadata: [{ odd: false }, { odd: true }, { odd: false }],
        splits: ["train", ["train", "hard"], "test"],
        exampleIds,
      });
      expect(first.map(({ id, inputs, outputs, metadata }) => [id, inputs, outputs, metadata])).toEqual([
        [exampleIds[0], { n: 0 }, { m: 0 }, { odd: false, dataset_split: ["train"] }],
        [exampleIds[1], { n: 1 }, { m: 1 }, { odd: true, dataset_split: ["train", "hard"] }],
        [exampleIds[2], { n: 2 }, { m: 2 }, { odd: false, dataset_split: ["test"] }],
      ]);
      const second = await client.createExamples([
        { dataset_id: datasetId, inputs: { n: 3 }, outputs: { m: 3 } },
        { dataset_id: datasetId, inputs: { n: 4 } },
      ]);
      expect(second.map(({ outputs }) => outputs)).toEqual([{ m: 3 }, null]);
      expect(await client.createExamples([])).toEqual([]);
      expect((await client.readDataset({ datasetId })).example_count).toBe(5);
    });

    it("are all created or none", async () => {
      const { client } = target();
      const { datasetId, exampleIds } = await datasetOf(1);
      const uploads = [unique(), exampleIds[0]].map((id) => ({ id, dataset_id: datasetId, inputs: { n: 1 } }));
      await expect(client.createExamples(uploads)).rejects.toEqual(conflict(exampleIds[0] as string));
      expect(await idsOf({ datasetId })).toEqual(exampleIds);
    });

    it("are changed together: all or none", async () => {
      const { client } = target();
      const { exampleIds } = await datasetOf(3);
      const [one, two] = exampleIds as [string, string];
      const updates = [one, two].map((id) => ({ id, inputs: { changed: id } }));
      expect(await client.updateExamples(updates)).toEqual({ count: 2, example_ids: [one, two], as_of: TIME });
      expect((await client.readExample(two)).inputs).toEqual({ changed: two });
      const half = [one, unique()].map((id) => ({ id, inputs: { again: true } }));
      await expect(client.updateExamples(half)).rejects.toEqual(notFound("Example"));
      expect((await client.readExample(one)).inputs).toEqual({ changed: one });
    });

    it("are deleted one by one, or several: all or none", async () => {
      const { client } = target();
      const { datasetId, exampleIds } = await datasetOf(4);
      const [one, two, three, four] = exampleIds as [string, string, string, string];
      await client.deleteExample(one);
      expect(await idsOf({ datasetId })).toEqual([two, three, four]);
      await expect(client.deleteExample(one)).rejects.toEqual(notFound("Example"));
      await expect(client.deleteExamples([two, one])).rejects.toEqual(notFound("Example"));
      expect(await idsOf({ datasetId })).toEqual([two, three, four]);
      await client.deleteExamples([two, three]);
      expect(await idsOf({ datasetId })).toEqual([four]);
      await expect(client.readExample(two)).rejects.toEqual(notFound("Example"));
      expect((await client.readDataset({ datasetId })).example_count).toBe(1);
    });

    it("of an upload keep their runs when they are deleted", async () => {
      const { client } = target();
      const body = graded(2);
      const { dataset, experiment } = await upload(target(), body);
      await client.deleteExample(body.results[0]?.row_id as string);
      expect(await idsOf({ datasetId: dataset.id })).toEqual([body.results[1]?.row_id]);
      expect(await listed(client.listRuns({ projectId: experiment.id }))).toHaveLength(2);
    });

    it("are listed completely, or with a limit and an offset", async () => {
      const { datasetId, exampleIds } = await datasetOf(230);
      expect(await idsOf({ datasetId })).toEqual(exampleIds);
      expect(await idsOf({ datasetId, limit: 150 })).toEqual(exampleIds.slice(0, 150));
      expect(await idsOf({ datasetId, limit: 7, offset: 225 })).toEqual(exampleIds.slice(225));
      expect(await idsOf({ datasetId, offset: 120 })).toEqual(exampleIds.slice(120));
      expect(await idsOf({ datasetId, exampleIds: [exampleIds[3] as string, unique()] })).toEqual([exampleIds[3]]);
      const { name: datasetName } = await target().client.readDataset({ datasetId });
      expect(await idsOf({ datasetName, limit: 1 })).toEqual(exampleIds.slice(0, 1));
    });

    it("are found by their splits and by metadata", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const made = await client.createExamples({
        datasetId,
        inputs: [{ n: 0 }, { n: 1 }, { n: 2 }],
        metadata: [{ kind: { deep: [1, 2] } }, { kind: { deep: [1] } }, { kind: "deep" }],
        splits: ["train", ["train", "hard"], []],
      });
      const [one, two, three] = made.map(({ id }) => id);
      expect(await idsOf({ datasetId, splits: ["train"] })).toEqual([one, two]);
      expect(await idsOf({ datasetId, splits: ["hard", "nowhere"] })).toEqual([two]);
      expect(await idsOf({ datasetId, splits: ["tra"] })).toEqual([]);
      expect(await idsOf({ datasetId, metadata: { kind: "deep" } })).toEqual([three]);
      expect(await idsOf({ datasetId, metadata: { kind: { deep: [1, 2] } } })).toEqual([one]);
    });

    it("are found by an expression on their metadata", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const made = await client.createExamples({
        datasetId,
        inputs: [{ n: "zero" }, { n: "one" }, { n: "two" }],
        metadata: [{ foo: "bar", tenant: 1 }, { foo: "baz", tenant: 2 }, { foo: "bar" }],
      });
      const [one, two, three] = made.map(({ id }) => id);
      const has = `has(metadata, '{"foo": "bar"}')`;
      expect(await idsOf({ datasetId, filter: has })).toEqual([one, three]);
      expect(await idsOf({ datasetId, filter: `and(not(${has}), exists(metadata, "tenant"))` })).toEqual([two]);
      expect(await idsOf({ datasetId, filter: 'and(eq(metadata_key, "tenant"), gt(metadata_value, 0))' })).toEqual([
        one,
        two,
      ]);
      await expect(idsOf({ datasetId, filter: 'gt(latency, "5s")' })).rejects.toEqual(refused(400, "latency"));
      await expect(idsOf({ datasetId, filter: "has(metadata" })).rejects.toEqual(refused(400, "At 12"));
    });

    it("are shown as they were at a given time", async () => {
      const { client, apiUrl } = target();
      const { datasetId, exampleIds } = await datasetOf(2);
      const [one, two] = exampleIds as [string, string];
      await client.updateExample(one, { inputs: { number: "changed" } });
      await client.deleteExample(two);
      const versions: Anything = await (await fetch(`${apiUrl}/datasets/${datasetId}/versions`)).json();
      const moments = versions.map(({ as_of }: { as_of: string }) => as_of).reverse();
      expect(moments).toHaveLength(3);
      const numbersAt = async (asOf: string | Date) =>
        (await listed(client.listExamples({ datasetId, asOf }))).map(({ inputs }) => inputs.number).sort();
      expect(await numbersAt(moments[0])).toEqual([0, 1]);
      expect(await numbersAt(moments[1])).toEqual([1, "changed"]);
      expect(await numbersAt(new Date(moments[2]))).toEqual(["changed"]);
      expect(await numbersAt("latest")).toEqual(["changed"]);
      expect(await numbersAt(new Date(0))).toEqual([]);
    });
  });
}
