import { describe, expect, it } from "vitest";
import {
  conflict,
  type GetTarget,
  graded,
  listed,
  notFound,
  START,
  TIME,
  UUID,
  unique,
  upload,
  wire,
} from "./support.ts";

export function datasetScenarios(target: GetTarget): void {
  describe("a dataset", () => {
    it("of an upload is read by its id and by its name", async () => {
      const { client } = target();
      const body = graded(3);
      const { dataset } = await upload(target(), body);
      const expected = {
        id: dataset.id,
        tenant_id: UUID,
        name: body.dataset_name,
        description: body.dataset_description,
        data_type: "kv",
        externally_managed: true,
        inputs_schema_definition: null,
        outputs_schema_definition: null,
        transformations: null,
        metadata: null,
        baseline_experiment_id: null,
        example_count: 3,
        session_count: 1,
        created_at: TIME,
        modified_at: TIME,
        last_session_start_time: wire(new Date(START).toISOString()),
      };
      expect(dataset).toEqual(expected);
      expect(await client.readDataset({ datasetId: dataset.id })).toEqual(dataset);
      expect(await client.readDataset({ datasetName: body.dataset_name as string })).toEqual(dataset);
    });

    it("exists, or does not exist", async () => {
      const { client } = target();
      const { dataset } = await upload(target(), graded(0));
      expect(await client.hasDataset({ datasetId: dataset.id })).toBe(true);
      expect(await client.hasDataset({ datasetName: dataset.name })).toBe(true);
      expect(await client.hasDataset({ datasetId: unique() })).toBe(false);
      expect(await client.hasDataset({ datasetName: unique() })).toBe(false);
    });

    it("that does not exist is not found", async () => {
      const { client } = target();
      const datasetId = unique();
      await expect(client.readDataset({ datasetId })).rejects.toEqual(notFound("Dataset"));
      await expect(client.updateDataset({ datasetId, name: unique() })).rejects.toEqual(notFound("Dataset"));
      await expect(client.deleteDataset({ datasetId })).rejects.toEqual(notFound("Dataset"));
      await expect(client.shareDataset(datasetId)).rejects.toEqual(notFound("Dataset"));
      await expect(client.unshareDataset(datasetId)).rejects.toEqual(notFound("Dataset"));
      await expect(client.readDatasetSharedSchema(datasetId)).rejects.toEqual(notFound("Dataset"));
      await expect(listed(client.listExamples({ datasetId }))).rejects.toEqual(notFound("Dataset"));
    });

    it("is created empty, and not twice under one name", async () => {
      const { client } = target();
      const name = unique();
      const made = await client.createDataset(name, {
        description: "by hand",
        dataType: "chat",
        inputsSchema: { type: "object", required: ["question"] },
        outputsSchema: { type: "object" },
        metadata: { team: "a" },
      });
      expect(made).toEqual({
        id: UUID,
        tenant_id: UUID,
        name,
        description: "by hand",
        data_type: "chat",
        externally_managed: false,
        inputs_schema_definition: { type: "object", required: ["question"] },
        outputs_schema_definition: { type: "object" },
        transformations: null,
        metadata: { team: "a" },
        baseline_experiment_id: null,
        example_count: 0,
        session_count: 0,
        created_at: TIME,
        modified_at: TIME,
        last_session_start_time: null,
      });
      expect(await client.readDataset({ datasetId: made.id })).toEqual(made);
      await expect(client.createDataset(name)).rejects.toEqual(conflict("Dataset already exists"));
    });

    it("is changed in the given fields, and keeps the others", async () => {
      const { client } = target();
      const other = await client.createDataset(unique());
      const made = await client.createDataset(unique(), { description: "by hand", metadata: { a: 1 } });
      const name = unique();
      const renamed = await client.updateDataset({ datasetId: made.id, name });
      expect(renamed).toEqual({ ...made, name, modified_at: TIME });
      await client.updateDataset({ datasetName: name, description: "anew" });
      expect(await client.readDataset({ datasetId: made.id })).toMatchObject({ name, description: "anew" });
      const taken = client.updateDataset({ datasetId: made.id, name: other.name });
      await expect(taken).rejects.toEqual(conflict("Dataset already exists"));
    });

    it("is deleted with its examples and its experiments", async () => {
      const { client } = target();
      const { dataset, experiment } = await upload(target(), graded(2));
      const [example] = await listed(client.listExamples({ datasetId: dataset.id }));
      await client.deleteDataset({ datasetId: dataset.id });
      expect(await client.hasDataset({ datasetId: dataset.id })).toBe(false);
      await expect(client.readExample(example.id)).rejects.toEqual(notFound("Example"));
      await expect(client.readProject({ projectId: experiment.id })).rejects.toEqual(notFound("Session"));
      const { name } = await client.createDataset(unique());
      await client.deleteDataset({ datasetName: name });
      expect(await client.hasDataset({ datasetName: name })).toBe(false);
    });

    it("has a page in the web app", async () => {
      const { client, webUrl } = target();
      const { dataset } = await upload(target(), graded(0));
      const url = `${webUrl}/o/${dataset.tenant_id}/datasets/${dataset.id}`;
      expect(await client.getDatasetUrl({ datasetId: dataset.id })).toBe(url);
      expect(await client.getDatasetUrl({ datasetName: dataset.name })).toBe(url);
    });

    it("is shared under a token, the same one each time, until it is no longer shared", async () => {
      const { client, apiUrl, webUrl } = target();
      const { dataset } = await upload(target(), graded(1));
      const current = async () => (await fetch(`${apiUrl}/datasets/${dataset.id}/share`)).json();
      expect(await current()).toBeNull();
      const shared = await client.shareDataset(dataset.id);
      expect(shared).toEqual({
        dataset_id: dataset.id,
        share_token: UUID,
        url: `${webUrl}/public/${shared.share_token}/d`,
      });
      expect(await client.shareDataset(undefined, dataset.name)).toEqual(shared);
      expect(await client.readDatasetSharedSchema(dataset.id)).toEqual(shared);
      await client.unshareDataset(dataset.id);
      expect(await current()).toBeNull();
      expect((await client.shareDataset(dataset.id)).share_token).not.toBe(shared.share_token);
    });

    it("that is shared is read under its token, with its examples, until it is no longer shared", async () => {
      const { client } = target();
      const { dataset } = await upload(target(), graded(3));
      const examples = await listed(client.listExamples({ datasetId: dataset.id }));
      const { share_token } = await client.shareDataset(dataset.id);
      expect(await client.readSharedDataset(share_token)).toEqual({ ...dataset, modified_at: TIME });
      const shared = await client.listSharedExamples(share_token);
      expect(shared.map(({ id, inputs, outputs }) => ({ id, inputs, outputs }))).toEqual(
        examples.map(({ id, inputs, outputs }) => ({ id, inputs, outputs })),
      );
      const [, second] = await Promise.all([
        client.listSharedExamples(share_token, { exampleIds: [unique()] }),
        client.listSharedExamples(share_token, { exampleIds: [examples[1].id, unique()] }),
      ]);
      expect(second.map(({ id }) => id)).toEqual([examples[1].id]);
      await client.unshareDataset(dataset.id);
      await expect(client.readSharedDataset(share_token)).rejects.toEqual(notFound("Dataset"));
      await expect(client.listSharedExamples(share_token)).rejects.toEqual(notFound("Dataset"));
      await expect(client.readSharedDataset(unique())).rejects.toEqual(notFound("Dataset"));
    });
  });

  describe("datasets", () => {
    it("are found by ids, by their names or a part of them, and by metadata", async () => {
      const { client } = target();
      const key = unique();
      const [one, two] = [
        await client.createDataset(`${key} One`, { metadata: { key, level: { n: 1 } } }),
        await client.createDataset(`${key} Two`, { metadata: { key, level: { n: 2 } } }),
      ];
      const found = async (query: Parameters<typeof client.listDatasets>[0]) =>
        (await listed(client.listDatasets(query))).map(({ id }) => id);
      expect(await found({ datasetNameContains: key })).toEqual([two.id, one.id]);
      expect(await found({ datasetNameContains: `${key} oN` })).toEqual([one.id]);
      expect(await found({ datasetName: `${key} Two` })).toEqual([two.id]);
      expect(await found({ datasetName: key })).toEqual([]);
      expect(await found({ datasetIds: [one.id, unique()] })).toEqual([one.id]);
      expect(await found({ metadata: { key } })).toEqual([two.id, one.id]);
      expect(await found({ metadata: { level: { n: 2 }, key } })).toEqual([two.id]);
    });

    it("are listed page by page", async () => {
      const { client } = target();
      const key = unique();
      const made = [];
      for (let n = 0; n < 5; n++) made.push((await client.createDataset(`${key} ${n}`)).id);
      const found = await listed(client.listDatasets({ datasetNameContains: key, limit: 2 }));
      expect(found.map(({ id }) => id)).toEqual(made.toReversed());
      const rest = await listed(client.listDatasets({ datasetNameContains: key, limit: 2, offset: 3 }));
      expect(rest.map(({ id }) => id)).toEqual(made.toReversed().slice(3));
    });
  });
}
