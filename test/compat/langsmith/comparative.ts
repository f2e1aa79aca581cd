import { describe, expect, it } from "vitest";
import { conflict, type GetTarget, graded, notFound, refused, UUID, unique, upload, wire } from "./support.ts";

export function comparativeScenarios(target: GetTarget): void {
  describe("a comparative experiment", () => {
    const twoExperiments = async () => {
      const dataset_name = unique();
      const [one, two] = [
        await upload(target(), graded(2, { dataset_name })),
        await upload(target(), graded(2, { dataset_name })),
      ];
      return [one, two] as const;
    };

    it("is stored with the names of its experiments", async () => {
      const [one, two] = await twoExperiments();
      const id = unique();
      const createdAt = new Date("2026-02-01T10:00:00.123Z");
      const made = await target().client.createComparativeExperiment({
        name: "A or B",
        experimentIds: [two.experiment.id, one.experiment.id],
        description: "which one",
        metadata: { judge: "large" },
        createdAt,
        id,
      });
      expect(made).toEqual({
        id,
        name: "A or B",
        description: "which one",
        tenant_id: one.dataset.tenant_id,
        created_at: wire(createdAt.toISOString()),
        modified_at: wire(createdAt.toISOString()),
        reference_dataset_id: one.dataset.id,
        extra: { metadata: { judge: "large" } },
        experiments_info: [two, one].map(({ experiment }) => ({ id: experiment.id, name: experiment.name })),
        feedback_stats: null,
      });
    });

    it("takes the feedback of a pairwise evaluator", async () => {
      const { client } = target();
      const [one, two] = await twoExperiments();
      const experimentIds = [one.experiment.id, two.experiment.id];
      const { id } = await client.createComparativeExperiment({ name: unique(), experimentIds });
      const [run] = await runsOf(one.experiment.id);
      const feedbackId = unique();
      await client.createFeedback(run.id, "preferred", { score: 1, comparativeExperimentId: id, feedbackId });
      expect(await client.readFeedback(feedbackId)).toMatchObject({ comparative_experiment_id: id, run_id: run.id });
    });

    const runsOf = async (projectId: string) => {
      const runs = [];
      for await (const run of target().client.listRuns({ projectId })) runs.push(run);
      return runs as [(typeof runs)[number]];
    };

    it("is not created with experiments that do not exist or of another dataset, or under a taken id", async () => {
      const { client } = target();
      const [{ dataset, experiment }] = await twoExperiments();
      const elsewhere = await upload(target(), graded(1));
      const of = (experimentIds: string[], id?: string) =>
        client.createComparativeExperiment({ name: unique(), experimentIds, referenceDatasetId: dataset.id, id });
      await expect(of([experiment.id, unique()])).rejects.toEqual(notFound("Session"));
      await expect(of([experiment.id, elsewhere.experiment.id])).rejects.toEqual(
        refused(400, "belongs to another dataset"),
      );
      const nowhere = { name: unique(), experimentIds: [unique()] };
      await expect(client.createComparativeExperiment(nowhere)).rejects.toEqual(notFound("Session"));
      const { id } = await of([experiment.id]);
      expect(id).toEqual(UUID);
      await expect(of([experiment.id], id)).rejects.toEqual(conflict(id));
    });
  });
}
