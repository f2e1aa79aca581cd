import { describe, expect, it } from "vitest";
import { conflict, type GetTarget, graded, listed, notFound, refused, TIME, unique, upload } from "./support.ts";

/** Splits, versions, files and attachments. */
export function datasetContentScenarios(target: GetTarget): void {
  const newDataset = async () => (await target().client.createDataset(unique())).id;

  describe("the splits of a dataset", () => {
    it("are listed, changed, and select examples", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const examples = await client.createExamples({
        datasetId,
        inputs: [{ n: 0 }, { n: 1 }, { n: 2 }],
        splits: ["train", ["train", "hard"], "test"],
      });
      const exampleIds = examples.map(({ id }) => id);
      expect(await client.listDatasetSplits({ datasetId })).toEqual(["hard", "test", "train"]);
      await client.updateDatasetSplits({ datasetId, splitName: "all", exampleIds });
      await client.updateDatasetSplits({ datasetId, splitName: "train", exampleIds, remove: true });
      expect(await client.listDatasetSplits({ datasetId })).toEqual(["all", "hard", "test"]);
      const found = await listed(client.listExamples({ datasetId, splits: ["hard", "test"] }));
      expect(found.map(({ inputs }) => inputs.n).sort()).toEqual([1, 2]);
      const [version] = (await listed(client.listExamples({ datasetId }))).map(({ modified_at }) => modified_at).sort();
      expect(await client.listDatasetSplits({ datasetId, asOf: version as string })).toEqual([
        "all",
        "hard",
        "test",
        "train",
      ]);
      const unknown = client.updateDatasetSplits({ datasetId, splitName: "x", exampleIds: [unique()] });
      await expect(unknown).rejects.toEqual(notFound("Example"));
    });
  });

  describe("the versions of a dataset", () => {
    it("are found by time and tag, read, and compared", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const first = await client.createExample({ n: 1 }, { m: 1 }, { datasetId });
      const asOf = first.modified_at as string;
      await client.updateDatasetTag({ datasetId, asOf, tag: "prod" });
      const second = await client.createExample({ n: 2 }, { m: 2 }, { datasetId });
      await client.updateExample(first.id, { inputs: { n: "new" } });
      expect(await client.readDatasetVersion({ datasetId, tag: "prod" })).toEqual({ tags: ["prod"], as_of: asOf });
      expect(await client.readDatasetVersion({ datasetId, asOf: new Date(asOf) })).toMatchObject({ as_of: asOf });
      expect(await client.readDatasetVersion({ datasetId, tag: "latest" })).toMatchObject({ tags: ["latest"] });
      const read = async (version: string) =>
        (await listed(client.listExamples({ datasetId, asOf: version }))).map(({ inputs }) => inputs.n).sort();
      expect([await read("prod"), await read("latest")]).toEqual([[1], [2, "new"]]);
      expect(await client.diffDatasetVersions({ datasetId, fromVersion: "prod", toVersion: "latest" })).toEqual({
        examples_added: [second.id],
        examples_modified: [first.id],
        examples_removed: [],
      });
      await expect(client.readDatasetVersion({ datasetId, tag: "x" })).rejects.toEqual(notFound("Dataset version"));
    });
  });

  describe("a dataset as a file", () => {
    it("is uploaded as CSV, and read as chats for fine-tuning", async () => {
      const { client } = target();
      const name = unique();
      const csv = { csvFile: new Blob(["question,answer\nHi,Hello\n"]), fileName: "chats.csv", name };
      const uploadCsv = () =>
        client.uploadCsv({ ...csv, inputKeys: ["question"], outputKeys: ["answer"], dataType: "chat" });
      expect(await uploadCsv()).toMatchObject({ name, data_type: "chat", example_count: 1 });
      expect(await client.readDatasetOpenaiFinetuning({ datasetName: name })).toEqual([
        {
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: "Hello" },
          ],
        },
      ]);
      await expect(uploadCsv()).rejects.toEqual(conflict("Dataset already exists"));
    });

    it("has examples of texts and chats", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      await client.createLLMExample("1 + 1?", "2", { datasetId });
      const message = { content: "Hi", _getType: () => "human", lc_id: ["x"], additional_kwargs: {} };
      await client.createChatExample([message as never], { type: "ai", data: { content: "Hello" } }, { datasetId });
      const chats = await client.readDatasetOpenaiFinetuning({ datasetId });
      expect(
        chats.map(({ messages }: { messages: { content: string }[] }) => messages.map(({ content }) => content)),
      ).toEqual([
        ["1 + 1?", "2"],
        ["Hi", "Hello"],
      ]);
    });

    it("is cloned from a public one", async () => {
      const { client, apiUrl } = target();
      const { dataset } = await upload(target(), graded(130));
      const { share_token } = await client.shareDataset(dataset.id);
      const datasetName = unique();
      await client.clonePublicDataset(share_token, { sourceApiUrl: apiUrl, datasetName });
      const clone = await listed(client.listExamples({ datasetName }));
      const original = await listed(client.listExamples({ datasetId: dataset.id }));
      const contents = (examples: typeof clone) =>
        examples.map(({ inputs, outputs }) => JSON.stringify([inputs, outputs])).sort();
      expect([clone.length, contents(clone)]).toEqual([130, contents(original)]);
    });
  });

  describe("an example with attachments", () => {
    it("returns them unchanged, and updates them", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const data = Uint8Array.of(0, 255, 10, 13, 45, 45, 128);
      const attachments = { picture: { mimeType: "image/png", data }, note: { mimeType: "text/plain", data } };
      const made = await client.createExample({ dataset_id: datasetId, inputs: { a: 1 }, attachments });
      const bytes = async (name: string) => {
        const url = (await client.readExample(made.id)).attachments?.[name]?.presigned_url as string;
        return new Uint8Array(await (await fetch(url)).arrayBuffer());
      };
      expect([await bytes("picture"), made.attachments?.picture?.mime_type]).toEqual([data, "image/png"]);
      const [found] = await listed(client.listExamples({ datasetId, includeAttachments: true }));
      expect(Object.keys(found?.attachments ?? {}).sort()).toEqual(["note", "picture"]);
      const update = { attachments_operations: { retain: [], rename: { picture: "image" } } };
      expect(await client.updateExample(made.id, update)).toEqual({ count: 1, example_ids: [made.id], as_of: TIME });
      expect(Object.keys((await client.readExample(made.id)).attachments ?? {})).toEqual(["image"]);
      expect(await bytes("image")).toEqual(data);
      const wrong = client.updateExample(made.id, { attachments_operations: { retain: ["x"] } });
      await expect(wrong).rejects.toEqual(refused(422, "no attachment"));
    });

    it("is erased with all of its versions", async () => {
      const { client } = target();
      const datasetId = await newDataset();
      const made = await client.createExample({ secret: 1 }, { a: 1 }, { datasetId });
      await client.deleteExamples([made.id], { hardDelete: true });
      expect(await listed(client.listExamples({ datasetId, asOf: made.modified_at }))).toEqual([]);
      await expect(client.readExample(made.id)).rejects.toEqual(notFound("Example"));
    });
  });
}
