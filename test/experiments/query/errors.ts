import { describe, expect, it } from "vitest";
import { apiOf, type GetService, plain, unique } from "./api.ts";

/** Routes of one record each: what stands for `:id`, and a body that the route would take. */
const RECORDS: [string, string, string, object?][] = [
  ["GET", "/sessions/:id", "session_id"],
  ["PATCH", "/sessions/:id", "session_id", { description: "d" }],
  ["DELETE", "/sessions/:id", "session_id"],
  ["GET", "/datasets/:id", "dataset_id"],
  ["PATCH", "/datasets/:id", "dataset_id", { description: "d" }],
  ["DELETE", "/datasets/:id", "dataset_id"],
  ["GET", "/datasets/:id/versions", "dataset_id"],
  ["GET", "/datasets/:id/share", "dataset_id"],
  ["PUT", "/datasets/:id/share", "dataset_id"],
  ["DELETE", "/datasets/:id/share", "dataset_id"],
  ["GET", "/datasets/:id/comparative", "dataset_id"],
  ["DELETE", "/datasets/comparative/:id", "comparative_experiment_id"],
  ["POST", "/datasets/:id/runs", "dataset_id", { session_ids: [unique()] }],
  [
    "POST",
    "/datasets/:id/runs/delta",
    "dataset_id",
    { baseline_session_id: unique(), comparison_session_ids: [unique()], feedback_key: "k" },
  ],
  [
    "POST",
    "/datasets/:id/runs/delta/stream",
    "dataset_id",
    { baseline_session_id: unique(), comparison_session_ids: [unique()], feedback_keys: ["k"] },
  ],
  [
    "POST",
    "/datasets/:id/compare",
    "dataset_id",
    { baseline_session_id: unique(), comparison_session_ids: [unique()] },
  ],
  ["GET", "/examples/:id", "example_id"],
  ["PATCH", "/examples/:id", "example_id", { inputs: {} }],
  ["DELETE", "/examples/:id", "example_id"],
  ["GET", "/runs/:id", "run_id"],
  ["GET", "/feedback/:id", "feedback_id"],
  ["PATCH", "/feedback/:id", "feedback_id", { score: 1 }],
  ["DELETE", "/feedback/:id", "feedback_id"],
];

/** Ids in query strings and bodies. */
const ELSEWHERE: [string, string, (string | number)[], object?][] = [
  ["GET", "/sessions?id=me", ["query", "id", 0]],
  ["GET", "/sessions?reference_dataset=me", ["query", "reference_dataset", 0]],
  ["GET", `/datasets?id=${unique()}&id=me`, ["query", "id", 1]],
  ["GET", "/examples?dataset=me", ["query", "dataset"]],
  ["GET", "/examples?id=me", ["query", "id", 0]],
  ["DELETE", "/examples?example_ids=me", ["query", "example_ids", 0]],
  ["GET", "/feedback?run=me", ["query", "run", 0]],
  ["POST", "/sessions", ["body", "reference_dataset_id"], { name: "n", reference_dataset_id: "me" }],
  ["POST", "/datasets", ["body", "id"], { name: "n", id: "me" }],
  ["POST", "/examples", ["body", "dataset_id"], { dataset_id: "me", inputs: {} }],
  [
    "POST",
    "/examples/bulk",
    ["body", 1, "id"],
    [
      { dataset_id: unique(), inputs: {} },
      { dataset_id: unique(), inputs: {}, id: "me" },
    ],
  ],
  ["POST", "/feedback", ["body", "run_id"], { key: "k", run_id: "me" }],
  ["POST", "/runs/query", ["body", "session", 1], { session: [unique(), "me"] }],
  ["POST", "/runs/query", ["body", "trace"], { trace: "me" }],
  ["POST", "/runs/stats", ["body", "reference_example", 0], { reference_example: "me" }],
  ["POST", "/datasets/comparative", ["body", "experiment_ids", 0], { experiment_ids: ["me"] }],
  ["POST", `/datasets/${unique()}/runs`, ["body", "session_ids", 0], { session_ids: ["me"] }],
];

/** What is said of a text that is no UUID, with the reason. */
const NO_UUID = {
  type: "uuid_parsing",
  msg: expect.stringMatching(/^Input should be a valid UUID, invalid /),
  ctx: { error: expect.stringMatching(/^invalid (length|character|group)/) },
};

export function errorScenarios(service: GetService): void {
  const api = apiOf(service);
  const at = (path: string, id: string) => path.replace(":id", id);

  describe("a record that does not exist", () => {
    it.each(RECORDS)("is not found by %s %s", async (method, path, _, body) => {
      for (const prefix of ["/api/v1", ""]) {
        const answer = await service().request(method, `${prefix}${at(path, unique())}`, body);
        expect([answer.status, answer.body]).toEqual([404, { detail: expect.stringMatching(/^\w[\w ]* not found$/) }]);
        expect(answer.headers.get("content-type")).toContain("application/json");
      }
    });

    it("is not found among several, and none is deleted", async () => {
      const { dataset } = await api.upload(plain(2));
      const examples = await api.get(`/examples?dataset=${dataset.id}`);
      const ids = [examples[0].id, unique()].map((id) => `example_ids=${id}`).join("&");
      const answer = await api.send("DELETE", `/examples?${ids}`);
      expect([answer.status, answer.body.detail]).toEqual([404, "Example not found"]);
      expect(await api.get(`/examples/count?dataset=${dataset.id}`)).toBe(2);
    });
  });

  describe("an id of another type", () => {
    it.each(RECORDS)("is refused with its position by %s %s", async (method, path, parameter, body) => {
      for (const id of ["not-a-uuid", "123", `${unique()}x`]) {
        const answer = await api.send(method, at(path, id), body);
        expect(answer.status).toBe(422);
        expect(answer.body.detail).toEqual([{ loc: ["path", parameter], ...NO_UUID, input: id }]);
      }
    });

    it.each(ELSEWHERE)("is refused by %s %s at %j", async (method, path, loc, body) => {
      const answer = await api.send(method, path, body);
      expect(answer.status).toBe(422);
      expect(answer.body.detail).toEqual([{ loc, ...NO_UUID, input: "me" }]);
    });
  });

  describe("a body", () => {
    it.each(["{", "[", '{"a":}', "nope"])(
      "such as %s is not JSON, and is refused with an error that states this",
      async (body) => {
        for (const path of ["/sessions", "/runs/query", "/feedback", "/examples"]) {
          const answer = await api.send("POST", path, body);
          expect(answer.status).toBe(422);
          expect(answer.body.detail).toEqual([
            {
              loc: ["body", expect.any(Number)],
              type: "json_invalid",
              msg: "JSON decode error",
              input: {},
              ctx: { error: expect.any(String) },
            },
          ]);
        }
      },
    );

    it("with several errors gets all of them in the response", async () => {
      const answer = await api.send("POST", "/datasets/comparative", { experiment_ids: [], id: 1, name: 2 });
      expect(answer.body.detail.map(({ loc }: { loc: unknown[] }) => loc.join("."))).toEqual(
        expect.arrayContaining(["body.experiment_ids", "body.id", "body.name"]),
      );
    });
  });

  describe("version 2", () => {
    const problems: [string, string, number, string, object?][] = [
      ["POST", "/runs/query", 422, "project_ids", {}],
      ["POST", "/runs/query", 422, "project_ids", { project_ids: [unique()], reference_dataset_id: unique() }],
      ["POST", "/runs/query", 422, "project_ids.0", { project_ids: ["me"] }],
      ["POST", "/runs/query", 422, "selects.1", { project_ids: [unique()], selects: ["ID", "COLOUR"] }],
      ["POST", "/runs/query", 422, "selects.0", { project_ids: [unique()], selects: ["id"] }],
      ["POST", "/runs/query", 422, "page_size", { project_ids: [unique()], page_size: 0 }],
      ["POST", "/runs/query", 404, "Session not found", { project_ids: [unique()] }],
      ["POST", "/runs/query", 404, "Dataset not found", { reference_dataset_id: unique() }],
      ["GET", `/runs/${unique()}?project_id=${unique()}`, 404, "Run not found"],
      ["GET", `/runs/me?project_id=${unique()}`, 422, "path.run_id"],
      ["GET", `/runs/${unique()}`, 422, "query.project_id"],
      ["GET", `/runs/${unique()}?project_id=${unique()}&selects=COLOUR`, 422, "query.selects"],
      ["POST", `/datasets/${unique()}/experiment-runs`, 404, "Dataset not found", { experiment_ids: [unique()] }],
      ["POST", `/datasets/${unique()}/experiment-runs`, 422, "body.experiment_ids", { experiment_ids: [] }],
      ["POST", `/datasets/me/experiment-runs`, 422, "path.dataset_id", { experiment_ids: [unique()] }],
    ];

    it.each(problems)("reports errors of %s %s in the format of RFC 7807: %i, %s", async (...scenario) => {
      const [method, path, status, detail, body] = scenario;
      for (const prefix of ["/api/v2", "/v2"]) {
        const answer = await service().request(method, `${prefix}${path}`, body);
        expect(answer.status).toBe(status);
        expect(answer.headers.get("content-type")).toBe("application/problem+json");
        expect(JSON.parse(answer.text)).toEqual({
          type: "about:blank",
          title: { 404: "Not Found", 422: "Unprocessable Content" }[status],
          status,
          detail: expect.stringContaining(detail),
          instance: `${prefix}${path}`.split("?")[0],
        });
      }
    });

    it("reports an invalid filter, cursor or body, and an experiment of another dataset, in that format", async () => {
      const [one, two] = [await api.upload(plain(1)), await api.upload(plain(1))];
      const project_ids = [one.experiment.id];
      const experiment_ids = [one.experiment.id];
      const sideBySide = `/datasets/${one.dataset.id}/experiment-runs`;
      const problems: [string, unknown, number, string][] = [
        ["/runs/query", { project_ids, filter: "eq(" }, 400, "At 3"],
        ["/runs/query", { project_ids, cursor: "x" }, 400, "cursor"],
        ["/runs/query", "{", 422, "JSON"],
        [sideBySide, { experiment_ids, cursor: "x" }, 400, "cursor"],
        [sideBySide, { experiment_ids, filters: { [one.experiment.id]: ["eq("] } }, 400, "At 3"],
        [sideBySide, { experiment_ids, filters: { [two.experiment.id]: [] } }, 400, two.experiment.id],
        [sideBySide, { experiment_ids: [two.experiment.id] }, 400, two.experiment.id],
        [sideBySide, { experiment_ids: [unique()] }, 404, "Session not found"],
      ];
      for (const [path, body, status, detail] of problems) {
        const answer = await service().request("POST", `/api/v2${path}`, body);
        expect([answer.status, answer.headers.get("content-type")]).toEqual([status, "application/problem+json"]);
        expect(JSON.parse(answer.text)).toMatchObject({ status, detail: expect.stringContaining(detail) });
      }
    });

    it("is served under both paths", async () => {
      const { dataset, experiment } = await api.upload(plain(1));
      const query = { project_ids: [experiment.id], selects: ["ID", "NAME"] };
      const answers = [];
      for (const prefix of ["/api/v2", "/v2"]) {
        const { body } = await service().request("POST", `${prefix}/runs/query`, query);
        const [{ id }] = body.items;
        const run = await service().request("GET", `${prefix}/runs/${id}?project_id=${experiment.id}&selects=STATUS`);
        const side = await service().request("POST", `${prefix}/datasets/${dataset.id}/experiment-runs`, {
          experiment_ids: [experiment.id],
        });
        expect(side.body.items[0].runs).toEqual([{ id }]);
        answers.push([body, run.body]);
      }
      expect(answers[0]).toEqual(answers[1]);
      expect(answers[0]).toEqual([
        { items: [{ id: expect.any(String), name: "run" }], has_more: false },
        { status: "SUCCESS" },
      ]);
    });
  });
}
