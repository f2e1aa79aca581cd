import { beforeAll, describe, expect, it } from "vitest";
import {
  type Anything,
  conflict,
  type GetTarget,
  graded,
  listed,
  NO_STATISTICS,
  notFound,
  statisticsOf,
  TIME,
  UUID,
  unique,
  upload,
  wire,
} from "./support.ts";

const SUMMARY = [
  { key: "f1", score: 0.75, comment: "over all" },
  { key: "f1", score: 0.25, comment: "of the hard ones" },
];

export function projectScenarios(target: GetTarget): void {
  describe("a project", () => {
    const body = graded(37, { summary_experiment_scores: SUMMARY as never });
    let dataset: Anything;
    let experiment: Anything;
    beforeAll(async () => {
      ({ dataset, experiment } = await upload(target(), body));
    });

    const fields = () => ({
      id: experiment.id,
      tenant_id: dataset.tenant_id,
      name: body.experiment_name,
      description: body.experiment_description,
      start_time: wire(body.experiment_start_time),
      end_time: wire(body.experiment_end_time),
      extra: { metadata: body.experiment_metadata },
      default_dataset_id: null,
      reference_dataset_id: dataset.id,
      trace_tier: "longlived",
      test_run_number: 1,
    });
    const whole = () => ({ ...fields(), ...statisticsOf(body.results, SUMMARY) });

    it("that was uploaded is read by its id, with statistics by default", async () => {
      expect(await target().client.readProject({ projectId: experiment.id })).toEqual(whole());
    });

    it("has statistics on request, by id and by name, and none otherwise", async () => {
      const { client } = target();
      const projectName = body.experiment_name;
      expect(await client.readProject({ projectId: experiment.id, includeStats: true })).toEqual(whole());
      expect(await client.readProject({ projectName, includeStats: true })).toEqual(whole());
      const without = { ...fields(), ...NO_STATISTICS };
      expect(await client.readProject({ projectId: experiment.id, includeStats: false })).toEqual(without);
      expect(await client.readProject({ projectName })).toEqual(without);
    });

    it("exists, or does not exist", async () => {
      const { client } = target();
      expect(await client.hasProject({ projectId: experiment.id })).toBe(true);
      expect(await client.hasProject({ projectName: body.experiment_name })).toBe(true);
      expect(await client.hasProject({ projectName: unique() })).toBe(false);
    });

    it("that does not exist is not found", async () => {
      const { client } = target();
      await expect(client.readProject({ projectId: unique() })).rejects.toEqual(notFound("Session"));
      await expect(client.hasProject({ projectId: unique() })).rejects.toEqual(notFound("Session"));
      await expect(client.readProject({ projectName: unique() })).rejects.toThrow("not found");
      await expect(client.updateProject(unique(), { name: unique() })).rejects.toEqual(notFound("Session"));
      await expect(client.deleteProject({ projectId: unique() })).rejects.toEqual(notFound("Session"));
    });

    it("has a page in the web app", async () => {
      const { client, webUrl } = target();
      const url = `${webUrl}/o/${dataset.tenant_id}/projects/p/${experiment.id}`;
      expect(await client.getProjectUrl({ projectId: experiment.id })).toBe(url);
      expect(await client.getProjectUrl({ projectName: body.experiment_name })).toBe(url);
    });

    it("counts repetitions of an example as runs of their own", async () => {
      const results = graded(5).results.flatMap((row, index) => [
        row,
        { ...row, end_time: new Date(Date.parse(row.end_time) + 1000 * index).toISOString() },
      ]);
      const again = await upload(target(), { ...graded(0), results });
      const project = await target().client.readProject({ projectId: again.experiment.id });
      expect(project).toMatchObject(statisticsOf(results));
      expect(again.dataset.example_count).toBe(5);
    });
  });

  describe("projects", () => {
    it("of a dataset are listed by its id and by its name, each with its own statistics", async () => {
      const { client } = target();
      const dataset_name = `listed-${unique()}`;
      const bodies = [3, 12, 20].map((n) => graded(n, { dataset_name }));
      const uploads = [];
      for (const body of bodies) uploads.push(await upload(target(), body));
      const referenceDatasetId = uploads[0]?.dataset.id;
      const found = await listed(client.listProjects({ referenceDatasetId, includeStats: true }));
      // All started at the same time; what came last is first.
      expect(found.map(({ id }) => id)).toEqual(uploads.map(({ experiment }) => experiment.id).reverse());
      expect(found.map(({ test_run_number }) => test_run_number)).toEqual([3, 2, 1]);
      for (const [index, project] of found.reverse().entries())
        expect(project).toMatchObject(statisticsOf(bodies[index]?.results ?? []));
      const byName = await listed(client.listProjects({ referenceDatasetName: dataset_name }));
      expect(byName.map(({ id }) => id)).toEqual(uploads.map(({ experiment }) => experiment.id).reverse());
      for (const project of byName) expect(project).toMatchObject(NO_STATISTICS);
      expect(await listed(client.listProjects({ referenceDatasetId: unique() }))).toEqual([]);
    });

    it("are found by a part of their names in any case, by all of it, by ids, and by metadata", async () => {
      const { client } = target();
      const key = unique();
      const name = (word: string) => `${key} ${word} 100%_Sure`;
      const [one, two] = [
        await client.createProject({ projectName: name("Één"), metadata: { key, model: { size: "small" }, n: 1 } }),
        await client.createProject({ projectName: name("two"), metadata: { key, model: { size: "large" }, n: 2 } }),
      ];
      const found = async (query: Parameters<typeof client.listProjects>[0]) =>
        (await listed(client.listProjects(query))).map(({ id }) => id);
      expect(await found({ nameContains: key })).toEqual([two.id, one.id]);
      expect(await found({ nameContains: `${key} éÉN` })).toEqual([one.id]);
      expect(await found({ nameContains: `${key.toUpperCase()} TWO 100%_s` })).toEqual([two.id]);
      expect(await found({ nameContains: `${key}%two` })).toEqual([]);
      expect(await found({ name: name("two") })).toEqual([two.id]);
      expect(await found({ name: key })).toEqual([]);
      expect(await found({ projectIds: [one.id, unique()] })).toEqual([one.id]);
      expect(await found({ projectIds: [one.id, two.id], nameContains: "two" })).toEqual([two.id]);
      expect(await found({ metadata: { key } })).toEqual([two.id, one.id]);
      expect(await found({ metadata: { key, model: { size: "small" } } })).toEqual([one.id]);
      expect(await found({ metadata: { key, n: "1" } })).toEqual([]);
    });

    it("without a dataset are distinguished from those with one", async () => {
      const { client } = target();
      const key = unique();
      const { dataset } = await upload(target(), graded(1));
      const [free, bound] = [
        await client.createProject({ projectName: `free ${key}` }),
        await client.createProject({ projectName: `bound ${key}`, referenceDatasetId: dataset.id }),
      ];
      const found = async (referenceFree: boolean | undefined) =>
        (await listed(client.listProjects({ nameContains: key, referenceFree }))).map(({ id }) => id);
      expect(await found(true)).toEqual([free.id]);
      expect(await found(undefined)).toEqual([bound.id, free.id]);
    });

    it("are listed completely when they exceed a page", async () => {
      const { client } = target();
      const { dataset } = await upload(target(), graded(0));
      const ids = [];
      for (let n = 0; n < 101; n++) {
        const made = await client.createProject({ projectName: unique(), referenceDatasetId: dataset.id });
        ids.push(made.id);
      }
      const found = await listed(client.listProjects({ referenceDatasetId: dataset.id }));
      expect(found).toHaveLength(102);
      expect(found.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
      expect(new Set(found.map(({ id }) => id)).size).toBe(102);
    });

    it("are created empty, and not twice under one name", async () => {
      const { client } = target();
      const projectName = unique();
      const made = await client.createProject({ projectName, description: "by hand", metadata: { a: 1 } });
      expect(made).toEqual({
        ...NO_STATISTICS,
        id: UUID,
        tenant_id: UUID,
        name: projectName,
        description: "by hand",
        start_time: TIME,
        end_time: null,
        extra: { metadata: { a: 1 } },
        default_dataset_id: null,
        reference_dataset_id: null,
        trace_tier: "longlived",
        test_run_number: null,
      });
      const empty = { run_count: 0, feedback_stats: {}, session_feedback_stats: {}, error_rate: null };
      expect(await client.readProject({ projectId: made.id })).toMatchObject(empty);
      await expect(client.createProject({ projectName })).rejects.toEqual(conflict("Session already exists."));
      expect(await client.createProject({ projectName, upsert: true })).toEqual(made);
      const { dataset } = await upload(target(), graded(1));
      const second = await client.createProject({ projectName: unique(), referenceDatasetId: dataset.id });
      expect(second).toMatchObject({ reference_dataset_id: dataset.id, test_run_number: 2 });
      const nowhere = { projectName: unique(), referenceDatasetId: unique() };
      await expect(client.createProject(nowhere)).rejects.toEqual(notFound("Dataset"));
    });

    it("are changed in the given fields, and keep the others", async () => {
      const { client } = target();
      const body = graded(2);
      const { experiment } = await upload(target(), body);
      const name = unique();
      await client.updateProject(experiment.id, { name });
      const before = { ...experiment, name };
      expect(await client.readProject({ projectId: experiment.id, includeStats: false })).toEqual(before);
      await client.updateProject(experiment.id, { metadata: { b: 2 }, endTime: "2026-03-01T00:00:00Z" });
      expect(await client.readProject({ projectId: experiment.id, includeStats: false })).toEqual({
        ...before,
        extra: { metadata: { b: 2 } },
        end_time: "2026-03-01T00:00:00.000+00:00",
      });
      await client.updateProject(experiment.id, { description: "anew" });
      expect(await client.readProject({ projectId: experiment.id })).toMatchObject({
        description: "anew",
        ...statisticsOf(body.results),
      });
    });

    it("cannot take the name of another one", async () => {
      const { client } = target();
      const [one, two] = [
        await client.createProject({ projectName: unique() }),
        await client.createProject({ projectName: unique() }),
      ];
      await expect(client.updateProject(one.id, { name: two.name })).rejects.toEqual(conflict("already exists"));
      expect(await client.updateProject(one.id, { name: one.name })).toMatchObject({ name: one.name });
    });

    it("are deleted with their runs, and the dataset stays", async () => {
      const { client } = target();
      const { dataset, experiment } = await upload(target(), graded(3));
      const [run] = await listed(client.listRuns({ projectId: experiment.id }));
      await client.deleteProject({ projectId: experiment.id });
      await expect(client.readProject({ projectId: experiment.id })).rejects.toEqual(notFound("Session"));
      await expect(client.readRun(run.id)).rejects.toEqual(notFound("Run"));
      expect(await listed(client.listFeedback({ runIds: [run.id] }))).toEqual([]);
      const left = await client.readDataset({ datasetId: dataset.id });
      expect(left).toMatchObject({ example_count: 3, session_count: 0, last_session_start_time: null });
      const { name } = await client.createProject({ projectName: unique() });
      await client.deleteProject({ projectName: name as string });
      expect(await client.hasProject({ projectName: name as string })).toBe(false);
    });
  });
}
