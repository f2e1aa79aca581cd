import { beforeAll, describe, expect, it } from "vitest";
import { type Anything, apiOf, type GetService, plain, query, unique } from "./api.ts";

/** The statistics that sessions are sorted by, and where they are in a session. */
const SORTED: [string, (session: Anything) => number | string | null][] = [
  ["name", (session) => session.name],
  ["start_time", (session) => Date.parse(session.start_time)],
  ["last_run_start_time", ({ last_run_start_time: at }) => (at === null ? null : Date.parse(at))],
  ["latency_p50", (session) => session.latency_p50],
  ["latency_p99", (session) => session.latency_p99],
  ["error_rate", (session) => session.error_rate],
  ["runs_count", (session) => session.run_count],
];

/** Keys that mean something to one of the databases. */
const KEYS = ["plain", "a.b", 'with "quotes"', "back\\slash", "array[0]", "Größe", "$", "it's", "{}", "a,b", "key=1"];

export function sessionScenarios(service: GetService): void {
  const api = apiOf(service);

  describe("sessions are sorted", () => {
    let dataset_id: string;
    let made: Anything[];
    beforeAll(async () => {
      const dataset_name = unique();
      const mark = unique();
      const start = Date.UTC(2026, 0, 1);
      const bodies = [
        { name: "banana", n: 3, latency_ms: 700, errors: 1, starts: 5, score: 0.5 },
        { name: "Apple", n: 4, latency_ms: 90, errors: 2, starts: 1, score: 0.25 },
        { name: "éclair", n: 0, latency_ms: 0, errors: 0, starts: 3, score: undefined },
        { name: "apple", n: 10, latency_ms: 2000, errors: 0, starts: 4, score: -1 },
        { name: "Zebra", n: 1, latency_ms: 90, errors: 1, starts: 2, score: undefined },
      ].map(({ name, n, latency_ms, errors, starts, score }) => {
        const body = plain(n, { dataset_name, experiment_name: `${name} ${mark}` });
        body.experiment_start_time = new Date(start + starts * 1000).toISOString();
        body.results = body.results.map((row, index) => ({
          ...row,
          start_time: new Date(start + 10_000 - starts * 100 + index).toISOString(),
          end_time: new Date(start + 10_000 - starts * 100 + index + latency_ms * (index + 1)).toISOString(),
          error: index < errors ? "bad" : null,
          evaluation_scores: score === undefined ? [] : KEYS.map((key, at) => ({ key, score: score * (at + 1) })),
        }));
        return body;
      });
      for (const body of bodies) ({ id: dataset_id } = (await api.upload(body)).dataset);
      made = await api.get(`/sessions${query({ reference_dataset: dataset_id, include_stats: true })}`);
    });

    const names = (sessions: Anything[]) => sessions.map(({ name }) => name.split(" ")[0]);

    /** Nothing counts as less than anything; of equals the one that was made last is first. */
    const sortedBy = (of: (session: Anything) => number | string | null, descending: boolean) =>
      names(
        made.toSorted((a, b) => {
          const [left, right] = [of(a), of(b)];
          const sign = descending ? -1 : 1;
          if (left !== right) {
            if (left === null || right === null) return left === null ? -sign : sign;
            return left < right ? -sign : sign;
          }
          return b.test_run_number - a.test_run_number;
        }),
      );

    it.each(SORTED)("by %s, both ways", async (sort_by, of) => {
      const found = (more: object) =>
        api.get(`/sessions${query({ reference_dataset: dataset_id, sort_by, ...more })}`).then(names);
      expect(await found({})).toEqual(sortedBy(of, true));
      expect(await found({ sort_by_desc: true })).toEqual(sortedBy(of, true));
      expect(await found({ sort_by_desc: false })).toEqual(sortedBy(of, false));
      expect(new Set(made.map(of)).size).toBeGreaterThan(3);
    });

    it.each(KEYS)("by the mean of the feedback %s", async (key) => {
      const of = ({ feedback_stats }: Anything) => feedback_stats[key]?.avg ?? null;
      const found = (more: object) =>
        api
          .get(
            `/sessions${query({ reference_dataset: dataset_id, sort_by: "feedback", sort_by_feedback_key: key, ...more })}`,
          )
          .then(names);
      expect(await found({})).toEqual(["banana", "Apple", "apple", "Zebra", "éclair"]);
      expect(await found({})).toEqual(sortedBy(of, true));
      expect(await found({ sort_by_desc: false })).toEqual(sortedBy(of, false));
    });

    it("by when they started, unless asked otherwise", async () => {
      const found = await api.get(`/sessions${query({ reference_dataset: dataset_id })}`);
      expect(names(found)).toEqual(["banana", "apple", "éclair", "Zebra", "Apple"]);
    });

    it("and shown page by page", async () => {
      const pages = [];
      for (let offset = 0; offset < 6; offset += 2)
        pages.push(
          names(
            await api.get(
              `/sessions${query({ reference_dataset: dataset_id, sort_by: "runs_count", limit: 2, offset })}`,
            ),
          ),
        );
      expect(pages).toEqual([["apple", "Apple"], ["banana", "Zebra"], ["éclair"]]);
    });

    it("but not by an unknown field", async () => {
      const answer = await api.send("GET", `/sessions${query({ sort_by: "cost" })}`);
      expect([answer.status, answer.body.detail[0].loc]).toEqual([422, ["query", "sort_by"]]);
    });
  });

  describe("sessions", () => {
    it("are found by metadata, all of which must be contained, including lists", async () => {
      const key = unique();
      const made: Record<string, Anything> = {};
      const metadata: Record<string, unknown> = {
        flat: { key, n: 1, is: true, none: null },
        deep: { key, at: { a: [1, { b: 2 }], c: "d" } },
        odd: { key, "a.b": 'q"', "": "empty", é: "ü" },
      };
      for (const [name, of] of Object.entries(metadata))
        made[name] = await api.ok("POST", "/sessions", { name: `${name} ${key}`, extra: { metadata: of, other: 1 } });
      const found = async (part: unknown) =>
        (await api.get(`/sessions${query({ metadata: JSON.stringify(part) })}`))
          .map(({ name }: Anything) => name.split(" ")[0])
          .sort();
      expect(await found({ key })).toEqual(["deep", "flat", "odd"]);
      for (const [name, of] of Object.entries(metadata)) expect(await found(of)).toEqual([name]);
      expect(await found({ key, n: 1 })).toEqual(["flat"]);
      expect(await found({ key, n: 2 })).toEqual([]);
      expect(await found({ key, n: "1" })).toEqual([]);
      expect(await found({ key, none: null })).toEqual(["flat"]);
      expect(await found({ key, missing: null })).toEqual([]);
      expect(await found({ key, at: { c: "d" } })).toEqual(["deep"]);
      expect(await found({ key, at: "d" })).toEqual([]);
      expect(await found({ key, other: 1 })).toEqual([]);
    });

    it("are found by metadata with characters that are replaced before it is stored", async () => {
      const metadata = { text: "\0 \ud800", mark: unique() };
      const { id } = await api.ok("POST", "/sessions", { name: unique(), extra: { metadata } });
      const found = await api.get(`/sessions${query({ metadata: JSON.stringify(metadata) })}`);
      expect(found.map((session: Anything) => session.id)).toEqual([id]);
    });

    it.each(["{", "[]", "1", '"a"', "null"])("are not found by the metadata %s", async (metadata) => {
      const answer = await api.send("GET", `/sessions${query({ metadata })}`);
      expect([answer.status, answer.body.detail[0].loc]).toEqual([422, ["query", "metadata"]]);
    });

    it("are filtered by several datasets and ids", async () => {
      const [one, two] = [await api.upload(plain(1)), await api.upload(plain(1))];
      const ids = [one, two].map(({ experiment }) => experiment.id).sort();
      const found = async (parameters: Parameters<typeof query>[0]) =>
        (await api.get(`/sessions${query(parameters)}`)).map(({ id }: Anything) => id).sort();
      expect(await found({ reference_dataset: [one.dataset.id, two.dataset.id] })).toEqual(ids);
      expect(await found({ id: ids })).toEqual(ids);
      expect(await found({ id: ids.map((id) => id.replaceAll("-", "").toUpperCase()) })).toEqual(ids);
      expect(await found({ id: ids, reference_dataset: one.dataset.id })).toEqual([one.experiment.id]);
      expect(await found({ reference_dataset: unique() })).toEqual([]);
    });

    it("keep the other fields of extra in a change, and end at the given time", async () => {
      const made = await api.ok("POST", "/sessions", {
        name: unique(),
        start_time: "2026-01-01T10:00:00",
        extra: { a: 1, metadata: { b: 2 } },
        trace_tier: "shortlived",
      });
      const changes = { extra: { metadata: { c: 3 } }, end_time: "2026-01-01T12:00:00+01:00", trace_tier: null };
      expect(await api.ok("PATCH", `/sessions/${made.id}`, changes)).toEqual({
        ...made,
        start_time: "2026-01-01T10:00:00.000+00:00",
        end_time: "2026-01-01T11:00:00.000+00:00",
        extra: { a: 1, metadata: { c: 3 } },
        trace_tier: "shortlived",
      });
    });
  });

  describe("a page", () => {
    const paged = ["/sessions", "/datasets", "/examples", "/feedback", "/feedback-configs"];
    const wrong: [string, string][] = paged.flatMap((path) =>
      ["limit=0", "limit=1001", "limit=-1", "limit=ten", "limit=1.5", "offset=-1", "offset=1e3"].map(
        (parameter): [string, string] => [path, parameter],
      ),
    );

    it.each(wrong)("of %s is not given for %s", async (path, parameter) => {
      const answer = await api.send("GET", `${path}?${parameter}`);
      expect(answer.status).toBe(422);
      expect(answer.body.detail).toMatchObject([{ loc: ["query", parameter.split("=")[0]] }]);
    });

    it.each(paged)("of %s is empty after the last record", async (path) => {
      expect(await api.get(`${path}?limit=1000&offset=1000000`)).toEqual([]);
    });
  });

  describe("parameters of newer clients", () => {
    const request = (method: string, path: string, body?: object) => service().request(method, path, body);

    it("select sessions by the version of their dataset", async () => {
      const mark = unique();
      for (const dataset_version of ["v1", "v2"])
        await request("POST", "/api/v1/sessions", {
          name: `${mark} ${dataset_version}`,
          extra: { metadata: { dataset_version } },
        });
      const found = await request("GET", `/api/v1/sessions?name_contains=${mark}&dataset_version=v1`);
      expect(found.body.map(({ name }: Anything) => name)).toEqual([`${mark} v1`]);
    });

    it("are refused if they have no effect, and select nothing that does not exist", async () => {
      const { id } = (await request("POST", "/api/v1/sessions", { name: unique() })).body;
      const runs = (fields: object) => request("POST", "/api/v2/runs/query", { project_ids: [id], ...fields });
      expect((await runs({ sem_filter: "angry" })).status).toBe(422);
      expect((await runs({ selects: ["ID", "LS_USER_ID"] })).status).toBe(200);
      expect((await request("GET", `/api/v1/sessions/${id}?stats_start_time=2026-01-01`)).status).toBe(422);
      const { body: queue } = await request("POST", "/api/v1/annotation-queues", { name: unique() });
      const items = `/api/v1/platform/annotation-queues/${queue.id}/items?status=archived&min_start_time=2026-01-01T00:00:00Z`;
      expect((await request("GET", items)).status).toBe(422);
      expect((await request("GET", "/api/v1/annotation-queues?assigned_to_me=true")).body).toEqual([]);
      expect((await request("GET", "/api/v1/feedback-configs?is_enforced=true")).body).toEqual([]);
    });

    it("may be 1,000 ids", async () => {
      const ids = Array.from({ length: 1000 }, () => `id=${crypto.randomUUID()}`).join("&");
      const response = await fetch(`${await service().listen()}/api/v1/examples?${ids}`);
      expect([response.status, await response.json()]).toEqual([200, []]);
    });
  });
}
