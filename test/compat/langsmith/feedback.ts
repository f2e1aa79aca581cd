import { beforeEach, describe, expect, it } from "vitest";
import type { Row } from "../../experiments/experiment.ts";
import {
  type Anything,
  conflict,
  feedbackStatistics,
  type GetTarget,
  graded,
  keyStatistics,
  listed,
  notFound,
  scoresOf,
  TIME,
  UUID,
  unique,
  upload,
  wire,
} from "./support.ts";

export function feedbackScenarios(target: GetTarget): void {
  const body = () => graded(6);
  let rows: Row[];
  let experiment: Anything;
  let runs: Anything[];
  beforeEach(async () => {
    const uploaded = body();
    rows = uploaded.results;
    ({ experiment } = await upload(target(), uploaded));
    runs = await listed(target().client.listRuns({ projectId: experiment.id, order: "asc" }));
  });

  const ofProject = async () => (await target().client.readProject({ projectId: experiment.id })) as Anything;

  describe("feedback", () => {
    it("that was uploaded is listed with its content", async () => {
      const { client } = target();
      const [, run] = runs;
      const found = await listed(client.listFeedback({ runIds: [run.id] }));
      const tone = found.find(({ key }) => key === "tone");
      expect(tone).toEqual({
        id: UUID,
        key: "tone",
        score: null,
        value: "warm",
        comment: null,
        correction: null,
        run_id: run.id,
        session_id: experiment.id,
        trace_id: run.id,
        start_time: wire(rows[1]?.start_time as string),
        is_root: true,
        feedback_group_id: null,
        comparative_experiment_id: null,
        feedback_source: { type: "model", metadata: null },
        feedback_thread_id: null,
        extra: null,
        created_at: TIME,
        modified_at: TIME,
      });
      expect(found.map(({ key }) => key).sort()).toEqual(["correct", "tone"]);
      expect(found.find(({ key }) => key === "correct")).toMatchObject({ score: 1, value: null });
      expect(await client.readFeedback(tone.id)).toEqual(tone);
    });

    it("is found by runs, keys and sources, on all pages", async () => {
      const { client } = target();
      const runIds = runs.map(({ id }) => id);
      const keys = async (query: object) =>
        (await listed(client.listFeedback({ runIds, ...query }))).map(({ key }) => key).sort();
      expect(await keys({})).toEqual(
        scoresOf(rows)
          .map(({ key }) => key)
          .sort(),
      );
      expect(await keys({ feedbackKeys: ["tone", "closeness"], runIds: runIds.slice(0, 2) })).toEqual([
        "closeness",
        "tone",
        "tone",
      ]);
      expect(await keys({ feedbackSourceTypes: ["model"] })).toEqual(["tone", "tone", "tone"]);
      expect(await keys({ runIds: [unique()] })).toEqual([]);
      const many = graded(60);
      const { experiment: large } = await upload(target(), many);
      const all = await listed(client.listRuns({ projectId: large.id }));
      const found = await listed(client.listFeedback({ runIds: all.map(({ id }) => id) }));
      expect(found).toHaveLength(scoresOf(many.results).length);
      expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
    });

    it("on a run is created, and the statistics of the run and of the project follow", async () => {
      const { client } = target();
      const [run] = runs;
      const feedbackId = unique();
      await client.createFeedback(run.id, "closeness", {
        score: 0.123456,
        comment: "by hand",
        correction: { answer: 1 },
        sourceInfo: { who: "me" },
        feedbackSourceType: "model",
        feedbackId,
      });
      expect(await client.readFeedback(feedbackId)).toMatchObject({
        id: feedbackId,
        run_id: run.id,
        session_id: experiment.id,
        trace_id: run.id,
        key: "closeness",
        score: 0.1235, // the client rounds
        comment: "by hand",
        correction: { answer: 1 },
        feedback_source: { type: "model", metadata: { who: "me" } },
      });
      const made = {
        key: "closeness",
        score: 0.1235,
        comment: "by hand",
        feedback_source: { type: "model" },
      };
      expect(await ofProject()).toMatchObject({ feedback_stats: feedbackStatistics([...scoresOf(rows), made]) });
      const ofRun = { feedback_stats: feedbackStatistics([...scoresOf(rows.slice(0, 1)), made]) };
      expect(await client.readRun(run.id)).toMatchObject(ofRun);
    });

    it("that is a boolean is a score of 0 or 1, and the config of its key is stored", async () => {
      const { client } = target();
      const key = unique();
      const feedbackConfig = { type: "categorical", categories: [{ value: 1, label: "yes" }, { value: 0 }] } as const;
      await client.createFeedback(runs[0].id, key, { score: true, feedbackConfig: feedbackConfig as Anything });
      await client.createFeedback(runs[1].id, key, { score: false, value: { any: ["thing"] } });
      const { feedback_stats } = await ofProject();
      expect(feedback_stats[key]).toEqual(
        keyStatistics([
          { key, score: true },
          { key, score: false },
        ]),
      );
      expect(await listed(client.listFeedbackConfigs({ feedbackKeys: [key] }))).toEqual([
        {
          feedback_key: key,
          feedback_config: {
            type: "categorical",
            min: null,
            max: null,
            categories: [
              { value: 1, label: "yes" },
              { value: 0, label: null },
            ],
          },
          is_lower_score_better: null,
          tenant_id: experiment.tenant_id,
          modified_at: TIME,
        },
      ]);
    });

    it("on a project counts only for the project", async () => {
      const { client } = target();
      const feedbackId = unique();
      const params = {
        runId: null,
        projectId: experiment.id,
        key: "overall",
        score: 0.5,
        comment: "so so",
        feedbackId,
      };
      await client.createFeedback(params);
      const before = feedbackStatistics(scoresOf(rows));
      const overall = { key: "overall", score: 0.5, comment: "so so" };
      expect(await ofProject()).toMatchObject({
        feedback_stats: before,
        session_feedback_stats: feedbackStatistics([overall]),
      });
      expect(await client.readFeedback(feedbackId)).toMatchObject({
        run_id: null,
        trace_id: null,
        start_time: null,
        is_root: false,
        session_id: experiment.id,
      });
      await client.deleteFeedback(feedbackId);
      expect(await ofProject()).toMatchObject({ feedback_stats: before, session_feedback_stats: {} });
    });

    it("is changed in the given fields, and the statistics follow", async () => {
      const { client } = target();
      const feedbackId = unique();
      await client.createFeedback(runs[0].id, "grade", { score: 0.5, value: "B", comment: "fine", feedbackId });
      const before = await client.readFeedback(feedbackId);
      await client.updateFeedback(feedbackId, { score: 0.75 });
      expect(await client.readFeedback(feedbackId)).toEqual({ ...before, score: 0.75, modified_at: TIME });
      const grade = { key: "grade", score: 0.75, value: "B", comment: "fine" };
      expect((await ofProject()).feedback_stats).toEqual(feedbackStatistics([...scoresOf(rows), grade]));
      await client.updateFeedback(feedbackId, { value: "A", comment: "good", correction: { answer: "none" } });
      const changed = {
        ...before,
        score: 0.75,
        value: "A",
        comment: "good",
        correction: { answer: "none" },
        modified_at: TIME,
      };
      expect(await client.readFeedback(feedbackId)).toEqual(changed);
      const better = { ...grade, value: "A", comment: "good" };
      expect((await ofProject()).feedback_stats).toEqual(feedbackStatistics([...scoresOf(rows), better]));
    });

    it("of an upload that is changed or deleted changes the statistics", async () => {
      const { client } = target();
      const [first] = await listed(client.listFeedback({ runIds: [runs[0].id], feedbackKeys: ["closeness"] }));
      await client.updateFeedback(first.id, { score: 1 });
      const scores = scoresOf(rows);
      const index = scores.findIndex(({ key }) => key === "closeness");
      const raised = scores.with(index, { key: "closeness", score: 1 });
      expect((await ofProject()).feedback_stats).toEqual(feedbackStatistics(raised));
      for (const { id } of await listed(client.listFeedback({ runIds: runs.map((run) => run.id) })))
        await client.deleteFeedback(id);
      expect((await ofProject()).feedback_stats).toEqual({});
      await expect(client.readFeedback(first.id)).rejects.toEqual(notFound("Feedback"));
    });

    it("of an evaluator is stored as the client reports it", async () => {
      const { client } = target();
      const run = await client.readRun(runs[2].id);
      const results = [
        { key: "judge", score: 0.5, evaluatorInfo: { model: "large" } },
        { key: "judge", value: "good", targetRunId: runs[3].id },
      ];
      await client.logEvaluationFeedback({ results }, run, { round: 1 });
      const [onOther, onRun] = await listed(
        client.listFeedback({ feedbackKeys: ["judge"], runIds: [run.id, runs[3].id] }),
      );
      expect(onRun).toMatchObject({
        run_id: run.id,
        score: 0.5,
        feedback_source: { type: "model", metadata: { model: "large", round: 1 } },
      });
      expect(onOther).toMatchObject({ run_id: runs[3].id, value: "good" });
    });

    it("that does not exist is not found, and is not created on a session that does not exist", async () => {
      const { client } = target();
      await expect(client.readFeedback(unique())).rejects.toEqual(notFound("Feedback"));
      await expect(client.updateFeedback(unique(), { score: 1 })).rejects.toEqual(notFound("Feedback"));
      await expect(client.deleteFeedback(unique())).rejects.toEqual(notFound("Feedback"));
      const nowhere = { runId: null, projectId: unique(), key: "key", score: 1 };
      await expect(client.createFeedback(nowhere)).rejects.toEqual(notFound("Session"));
    });

    it("is replaced under its id, and not created under a taken one", async () => {
      const { client } = target();
      const feedbackId = unique();
      for (const score of [1, 0]) await client.createFeedback(runs[0].id, "once", { score, feedbackId });
      expect((await ofProject()).feedback_stats.once).toMatchObject({ n: 1, avg: 0 });
      const another = client.createFeedback(runs[0].id, "another", { score: 1, feedbackId });
      await expect(another).rejects.toEqual(conflict(feedbackId));
      const ofAnother = client.createFeedback(runs[1].id, "once", { score: 1, feedbackId });
      await expect(ofAnother).rejects.toEqual(conflict(feedbackId));
      expect((await ofProject()).feedback_stats.once).toMatchObject({ n: 1, avg: 0 });
    });
  });

  describe("the config of a feedback key", () => {
    it("is created, found, changed and deleted", async () => {
      const { client } = target();
      const feedbackKey = `Länge ${unique()}`;
      const feedbackConfig = { type: "continuous" as const, min: 0, max: 10 };
      const made = await client.createFeedbackConfig({ feedbackKey, feedbackConfig, isLowerScoreBetter: true });
      expect(made).toEqual({
        feedback_key: feedbackKey,
        feedback_config: { type: "continuous", min: 0, max: 10, categories: null },
        is_lower_score_better: true,
        tenant_id: experiment.tenant_id,
        modified_at: TIME,
      });
      const same = { feedbackKey, feedbackConfig, isLowerScoreBetter: true };
      expect(await client.createFeedbackConfig(same)).toEqual(made);
      const other = { feedbackKey, feedbackConfig: { type: "freeform" as const } };
      await expect(client.createFeedbackConfig(other)).rejects.toEqual(conflict(feedbackKey));
      expect(await listed(client.listFeedbackConfigs({ nameContains: feedbackKey.toUpperCase() }))).toEqual([made]);
      const changed = await client.updateFeedbackConfig(feedbackKey, { isLowerScoreBetter: false });
      expect(changed).toEqual({ ...made, is_lower_score_better: false, modified_at: TIME });
      await client.deleteFeedbackConfig(feedbackKey);
      expect(await listed(client.listFeedbackConfigs({ feedbackKeys: [feedbackKey] }))).toEqual([]);
      await expect(client.deleteFeedbackConfig(feedbackKey)).rejects.toEqual(notFound("Feedback config"));
      await expect(client.updateFeedbackConfig(feedbackKey, {})).rejects.toEqual(notFound("Feedback config"));
    });

    it("can be sent again for a key that feedback created", async () => {
      const { client } = target();
      const key = unique();
      const feedbackConfig = { type: "continuous", min: 0, max: 1 } as Anything;
      await client.createFeedback(runs[0].id, key, { score: 1, feedbackConfig });
      const said = await client.createFeedbackConfig({ feedbackKey: key, feedbackConfig });
      expect(said.feedback_key).toBe(key);
      const otherWay = { feedbackKey: key, feedbackConfig, isLowerScoreBetter: true };
      await expect(client.createFeedbackConfig(otherWay)).rejects.toEqual(conflict(key));
    });

    it("is listed for all keys", async () => {
      const { client } = target();
      const mark = unique();
      const keys = Array.from({ length: 103 }, (_, index) => `${mark} ${index}`);
      for (const feedbackKey of keys)
        await client.createFeedbackConfig({ feedbackKey, feedbackConfig: { type: "freeform" } });
      const found = await listed(client.listFeedbackConfigs({ nameContains: mark }));
      expect(found.map(({ feedback_key }) => feedback_key).sort()).toEqual(keys.toSorted());
    });
  });
}
