import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { type Anything, apiOf, plain, query, unique } from "./query/api.ts";

describe.each(databases)("versions of a dataset on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());
  const api = apiOf(() => service);

  /** A dataset of three examples; the second one was changed, then the first one was deleted. */
  /** Changes within the same millisecond are one version. */
  const nextMillisecond = () => {
    const now = Date.now();
    return until("the next millisecond", async () => Date.now() > now);
  };
  const changedDataset = async () => {
    const { id } = await api.ok("POST", "/datasets", { name: unique() });
    const made = await api.ok(
      "POST",
      "/examples/bulk",
      [0, 1, 2].map((n) => ({ dataset_id: id, inputs: { n } })),
    );
    const ids = made.map((example: Anything) => example.id) as [string, string, string];
    await nextMillisecond();
    await api.ok("PATCH", `/examples/${ids[1]}`, { inputs: { n: "changed" } });
    await nextMillisecond();
    await api.ok("DELETE", `/examples/${ids[0]}`);
    const path = `/datasets/${id}`;
    const versions = (await api.get(`${path}/versions`)) as { tags: string[] | null; as_of: string }[];
    const times = versions.map(({ as_of }) => as_of).reverse() as [string, string, string];
    return { id: id as string, path, ids, versions, times };
  };

  it("are the times at which its examples changed, the newest first", async () => {
    const { path, ids, versions, times } = await changedDataset();
    expect(versions.map(({ tags }) => tags)).toEqual([["latest"], null, null]);
    expect(times).toEqual(times.toSorted());
    expect(await api.get(`${path}/versions?limit=1&offset=2`)).toEqual([{ tags: null, as_of: times[0] }]);
    const ofSecond = await api.get(`${path}/versions?example=${ids[1]}`);
    expect(ofSecond.map(({ as_of }: Anything) => as_of)).toEqual([times[1], times[0]]);
    const { dataset } = await api.upload(plain(3));
    expect(await api.get(`/datasets/${dataset.id}/versions`)).toEqual([
      { tags: ["latest"], as_of: expect.any(String) },
    ]);
  });

  it("are found by a time at or after them, or by a tag", async () => {
    const { path, times } = await changedDataset();
    const read = async (parameters: Parameters<typeof query>[0]) => {
      const { status, body } = await api.send("GET", `${path}/version${query(parameters)}`);
      return status === 200 ? body : [status, body.detail];
    };
    expect(await read({ as_of: times[1] })).toEqual({ tags: null, as_of: times[1] });
    expect(await read({ as_of: "2200-01-01 00:00:00+00:00" })).toEqual({ tags: ["latest"], as_of: times[2] });
    expect(await read({ tag: "latest" })).toEqual({ tags: ["latest"], as_of: times[2] });
    expect(await read({ as_of: "2020-01-01" })).toEqual([
      404,
      expect.stringContaining("not found: the dataset has no"),
    ]);
    expect(await read({ tag: "prod" })).toEqual([404, 'Dataset version not found: no version has the tag "prod".']);
    expect((await read({}))[0]).toBe(422);
    expect((await read({ tag: "a", as_of: times[0] }))[0]).toBe(422);
    const empty = await api.ok("POST", "/datasets", { name: unique() });
    expect((await api.send("GET", `/datasets/${empty.id}/version?tag=latest`)).status).toBe(404);
  });

  it("get tags, which move and select the version wherever examples are read", async () => {
    const { id, path, ids, times } = await changedDataset();
    const put = (tag: string, as_of: string) => api.ok("PUT", `${path}/tags`, { tag, as_of });
    expect(await put("prod", times[0])).toEqual({ tags: ["prod"], as_of: times[0] });
    const inputs = async (as_of: string) =>
      (await api.get(`/examples${query({ dataset: id, as_of })}`)).map((example: Anything) => example.inputs.n);
    expect(await inputs("prod")).toEqual([0, 1, 2]);
    // The official clients send the current time when no example has changed.
    expect(await put("prod", "2200-01-01T00:00:00Z")).toEqual({ tags: ["latest", "prod"], as_of: times[2] });
    expect(await inputs("prod")).toEqual(["changed", 2]);
    expect(await put("git:commit:1", "prod")).toMatchObject({ as_of: times[2] });
    await put("old", times[0]);
    expect(await api.get(`${path}/tags`)).toEqual([
      { tags: ["old"], as_of: times[0] },
      { tags: ["latest", "git:commit:1", "prod"], as_of: times[2] },
    ]);
    expect(await api.get(`${path}/versions?search=COMMIT`)).toMatchObject([{ as_of: times[2] }]);
    expect((await api.get(`/examples/${ids[0]}?as_of=old`)).inputs).toEqual({ n: 0 });
    expect((await api.send("GET", `/examples/${ids[0]}?as_of=prod`)).status).toBe(404);
    expect(await api.get(`/examples/count${query({ dataset: id, as_of: "old" })}`)).toBe(3);
    expect((await api.send("GET", `/examples${query({ dataset: id, as_of: "yesterday" })}`)).status).toBe(404);
    const nowhere = await api.send("GET", "/examples?as_of=prod");
    expect([nowhere.status, nowhere.body.detail[0].loc]).toEqual([422, ["query", "as_of"]]);
  });

  it("are not tagged with what is a time, or with `latest`", async () => {
    const { path, times } = await changedDataset();
    for (const tag of ["latest", "2026-01-01", "", "x".repeat(201)]) {
      const { status, body } = await api.send("PUT", `${path}/tags`, { tag, as_of: times[0] });
      expect([tag, status, body.detail[0].loc]).toEqual([tag, 422, ["body", "tag"]]);
    }
    const early = await api.send("PUT", `${path}/tags`, { tag: "x", as_of: "2020-01-01" });
    expect(early.status).toBe(404);
    expect(await api.get(`${path}/tags`)).toEqual([]);
  });

  it("differ in the examples that were added, changed and removed between them", async () => {
    const { path, ids, times } = await changedDataset();
    const diff = (from_version: string, to_version: string) =>
      api.get(`${path}/versions/diff${query({ from_version, to_version })}`);
    const none = { examples_added: [], examples_modified: [], examples_removed: [] };
    expect(await diff(times[0], times[1])).toEqual({ ...none, examples_modified: [ids[1]] });
    expect(await diff(times[1], "latest")).toEqual({ ...none, examples_removed: [ids[0]] });
    expect(await diff("latest", times[0])).toEqual({
      examples_added: [ids[0]],
      examples_modified: [ids[1]],
      examples_removed: [],
    });
    expect(await diff(times[2], times[2])).toEqual(none);
    expect(
      (await api.send("GET", `${path}/versions/diff${query({ from_version: "a", to_version: "b" })}`)).status,
    ).toBe(404);
  });

  it("have an example again that was deleted, when it is added with its id", async () => {
    const { id, ids, times } = await changedDataset();
    const again = { dataset_id: id, id: ids[0], inputs: { n: "again" }, split: "new" };
    const [added, restored] = await api.ok("POST", "/examples/bulk", [{ dataset_id: id, inputs: { n: 3 } }, again]);
    expect([added.name, restored.name, restored.id]).toEqual(["#4", "#1", ids[0]]);
    expect(restored).toMatchObject({ inputs: { n: "again" }, metadata: { dataset_split: ["new"] } });
    const inputs = async (as_of: string) =>
      (await api.get(`/examples${query({ dataset: id, as_of, order: "recently_created" })}`)).map(
        (example: Anything) => example.inputs.n,
      );
    expect((await inputs(times[0])).sort()).toEqual([0, 1, 2]);
    expect((await inputs(times[2])).sort()).toEqual([2, "changed"]);
    expect((await inputs("latest")).sort()).toEqual([2, 3, "again", "changed"]);
    expect((await api.get(`/datasets/${id}`)).example_count).toBe(4);
    expect((await api.send("POST", "/examples", again)).status).toBe(409);
    const other = (await api.ok("POST", "/datasets", { name: unique() })).id;
    await api.ok("DELETE", `/examples/${ids[0]}`);
    expect((await api.send("POST", "/examples", { ...again, dataset_id: other })).status).toBe(409);
  });

  it("lose the content of an example that is erased, and no other", async () => {
    const { id, ids, times } = await changedDataset();
    const body = { example_ids: [ids[0], ids[1]], hard_delete: true };
    const erase = () => service.request("POST", "/v1/platform/datasets/examples/delete", body);
    expect((await erase()).status).toBe(200);
    const inputs = async (as_of: string) =>
      (await api.get(`/examples${query({ dataset: id, as_of })}`)).map((example: Anything) => example.inputs.n);
    expect([await inputs(times[0]), await inputs("latest")]).toEqual([[2], [2]]);
    expect((await api.get(`/datasets/${id}`)).example_count).toBe(1);
    expect(
      (await service.request("POST", "/v1/platform/datasets/examples/delete", { ...body, example_ids: [unique()] }))
        .status,
    ).toBe(404);
    const one = `/v1/platform/datasets/${id}/examples/${ids[2]}`;
    expect([(await service.request("DELETE", one)).status, (await service.request("DELETE", one)).status]).toEqual([
      200, 200,
    ]);
    expect(await inputs("latest")).toEqual([]);
    expect(await inputs(times[0])).toEqual([2]);
  });

  it("keep the runs of an example that is erased, without its inputs", async () => {
    const { results } = plain(2);
    const { dataset, experiment } = await api.upload(plain(0, { results }));
    const example_ids = [results[0]?.row_id];
    const body = { example_ids, hard_delete: true };
    expect((await service.request("POST", "/v1/platform/datasets/examples/delete", body)).status).toBe(200);
    const { runs } = await api.ok("POST", "/runs/query", { session: [experiment.id], order: "asc" });
    expect(runs.map(({ inputs }: Anything) => inputs)).toEqual([{}, results[1]?.inputs]);
    expect([runs[0].inputs_preview, runs[0].outputs]).toEqual(["{}", results[0]?.actual_outputs]);
    const rows = await api.ok("POST", `/datasets/${dataset.id}/runs`, { session_ids: [experiment.id] });
    expect(rows.map(({ id }: Anything) => id)).toEqual([results[1]?.row_id]);
    await api.upload(plain(0, { dataset_name: dataset.name, results }));
    expect((await api.get(`/examples/${example_ids[0]}`)).inputs).toEqual(results[0]?.inputs);
  });
});
