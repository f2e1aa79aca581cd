import { beforeAll, describe, expect, it } from "vitest";
import { type Anything, apiOf, type GetService, plain, query, unique } from "./api.ts";

export function exampleScenarios(service: GetService): void {
  const api = apiOf(service);
  const newDataset = async (): Promise<string> => (await api.ok("POST", "/datasets", { name: unique() })).id;

  describe("examples", () => {
    let dataset: string;
    beforeAll(async () => {
      dataset = await newDataset();
      const texts = ["Alpha beta", "beta", "Größe ÉTÉ", "100% sure_ly", "nothing"];
      const bodies = texts.map((text, n) => ({
        dataset_id: dataset,
        inputs: { text },
        outputs: n === 4 ? null : { n, twice: text.slice(0, 3) },
        created_at: `2026-01-0${5 - n}T00:00:00`,
        ...(n === 1 && { source_run_id: dataset.replaceAll("-", "") }),
      }));
      await api.ok("POST", "/examples/bulk", bodies);
    });

    const found = async (parameters: Parameters<typeof query>[0]) =>
      (await api.get(`/examples${query({ dataset, ...parameters })}`)).map(
        ({ name }: Anything) => Number(name.slice(1)) - 1,
      );

    it("are found by their text, in any case", async () => {
      expect(await found({ full_text_contains: "BETA" })).toEqual([0, 1]);
      expect(await found({ full_text_contains: ["beta", "alp"] })).toEqual([0]);
      expect(await found({ full_text_contains: "été" })).toEqual([2]);
      expect(await found({ full_text_contains: "0% sure_" })).toEqual([3]);
      expect(await found({ full_text_contains: "%" })).toEqual([3]);
      expect(await found({ filter: 'search("ALPHA beta")' })).toEqual([0]);
      expect(await found({ filter: 'or(search("été"), search("nothing"))' })).toEqual([2, 4]);
    });

    it("are found by text that JSON escapes with a backslash", async () => {
      const of = await newDataset();
      const inputs = { text: 'a "quoted" C:\\TEMP path,\nand a line' };
      const made = await api.ok("POST", "/examples", { dataset_id: of, inputs, metadata: { said: 'by "Ann"' } });
      await api.ok("POST", "/examples", { dataset_id: of, inputs: { text: "quoted temp" } });
      const foundBy = async (parameters: Parameters<typeof query>[0]) =>
        (await api.get(`/examples${query({ dataset: of, ...parameters })}`)).map(({ id }: Anything) => id);
      for (const text of ['"QUOTED" c:', "c:\\temp", "path,\nand"])
        expect([text, await foundBy({ full_text_contains: text })]).toEqual([text, [made.id]]);
      for (const word of ['"QUOTED"', "c:\\temp", '"ann"'])
        expect([word, await foundBy({ filter: `search(${JSON.stringify(word)})` })]).toEqual([word, [made.id]]);
    });

    it("are sorted as requested", async () => {
      expect(await found({})).toEqual([0, 1, 2, 3, 4]);
      expect(await found({ order: "recently_created" })).toEqual([0, 1, 2, 3, 4]);
      expect(await found({ order: "recently_created", descending: false })).toEqual([4, 3, 2, 1, 0]);
      const ids = (await api.get(`/examples${query({ dataset, order: "id" })}`)).map(({ id }: Anything) => id);
      expect(ids).toEqual(ids.toSorted());
      expect(await found({ order: "id", descending: true })).toEqual((await found({ order: "id" })).reverse());
      const shuffled = await found({ order: "random", random_seed: 7 });
      expect(shuffled.toSorted()).toEqual([0, 1, 2, 3, 4]);
      expect(await found({ order: "random", random_seed: 7 })).toEqual(shuffled);
      const orders = await Promise.all([1, 2, 3, 4, 5].map((random_seed) => found({ order: "random", random_seed })));
      expect(new Set(orders.map(String)).size).toBeGreaterThan(1);
    });

    it("that changed last are first", async () => {
      const of = await newDataset();
      const made = await api.ok(
        "POST",
        "/examples/bulk",
        [0, 1, 2].map((n) => ({ dataset_id: of, inputs: { n } })),
      );
      await api.ok("PATCH", `/examples/${made[1].id}`, { outputs: { seen: true } });
      const order = (await api.get(`/examples?dataset=${of}`)).map(({ inputs }: Anything) => inputs.n);
      expect(order).toEqual([1, 0, 2]);
    });

    it("have the fields that were selected, and those that clients rely on", async () => {
      const always = ["created_at", "dataset_id", "id", "inputs", "modified_at", "name"];
      const fields = async (select: string[]) =>
        Object.keys((await api.get(`/examples${query({ dataset, select, limit: 1 })}`))[0]).sort();
      expect(await fields(["id"])).toEqual(always);
      expect(await fields(["outputs", "metadata"])).toEqual([...always, "metadata", "outputs"].sort());
      const answer = await api.send("GET", "/examples?select=colour");
      expect([answer.status, answer.body.detail[0].loc.slice(0, 2)]).toEqual([422, ["query", "select"]]);
    });

    it("are counted by the same conditions", async () => {
      const count = (parameters: Parameters<typeof query>[0]) => api.get(`/examples/count${query(parameters)}`);
      expect(await count({ dataset })).toBe(5);
      expect(await count({ dataset, full_text_contains: "beta" })).toBe(2);
      expect(await count({ dataset, filter: 'search("beta")' })).toBe(2);
      expect(await count({ dataset, as_of: "2020-01-01T00:00:00Z" })).toBe(0);
      const unknown = await api.send("GET", `/examples/count?dataset=${unique()}`);
      expect([unknown.status, unknown.body.detail]).toEqual([404, "Dataset not found"]);
    });

    it("keep the time at which they were created, even if they were added later", async () => {
      const [first] = await api.get(`/examples${query({ dataset, limit: 1 })}`);
      expect(first.created_at).toBe("2026-01-05T00:00:00.000+00:00");
      expect(Date.parse(first.modified_at)).toBeGreaterThan(Date.parse("2026-06-01"));
      const [version, ...others] = await api.get(`/datasets/${dataset}/versions`);
      expect([version.as_of, others]).toEqual([first.modified_at, []]);
    });
  });

  describe("an example", () => {
    it("clears the fields that are null, and keeps those that are omitted", async () => {
      const made = await api.ok("POST", "/examples", {
        dataset_id: await newDataset(),
        inputs: { a: 1 },
        outputs: { b: 2 },
        metadata: { c: 3 },
        split: "one",
      });
      const modified_at = expect.any(String);
      const path = `/examples/${made.id}`;
      expect(await api.ok("PATCH", path, {})).toEqual({ ...made, modified_at });
      const nulls = { inputs: null, outputs: null, metadata: null, split: null };
      expect(await api.ok("PATCH", path, nulls)).toEqual({
        ...made,
        outputs: null,
        metadata: { dataset_split: ["one"] },
        modified_at,
      });
      expect((await api.ok("PATCH", path, { split: [] })).metadata).toEqual({ dataset_split: ["base"] });
    });

    it("belongs to one dataset, and all examples of a request belong to the same one", async () => {
      const [one, two] = [await newDataset(), await newDataset()];
      const bodies = [one, one, two].map((dataset_id) => ({ dataset_id, inputs: {} }));
      const answer = await api.send("POST", "/examples/bulk", bodies);
      expect([answer.status, answer.body.detail[0].loc]).toEqual([422, ["body", 2, "dataset_id"]]);
      expect(await api.get(`/examples/count?dataset=${one}`)).toBe(0);
      expect(await api.ok("POST", "/examples/bulk", [])).toEqual([]);
    });

    it("of a dataset of uploads can be changed, and the next upload changes it back", async () => {
      const body = plain(1);
      const { dataset } = await api.upload(body);
      const [row] = body.results;
      await api.ok("PATCH", `/examples/${row?.row_id}`, { outputs: { answer: "corrected" }, metadata: { by: "me" } });
      const read = () => api.get(`/examples/${row?.row_id}`);
      expect(await read()).toMatchObject({ outputs: { answer: "corrected" }, metadata: { by: "me" } });
      await api.upload(plain(0, { dataset_name: dataset.name, results: body.results }));
      expect(await read()).toMatchObject({ outputs: row?.expected_outputs });
    });

    it("is refused in parts that belong to no example, or are not JSON", async () => {
      const dataset = await newDataset();
      const parts = async (given: Record<string, string>, method = "POST") => {
        const body = new FormData();
        for (const [name, text] of Object.entries(given)) body.append(name, new Blob([text]));
        const url = `http://localhost/v1/platform/datasets/${dataset}/examples`;
        const response = await service().threadmill.fetch(new Request(url, { method, body }));
        const answer = (await response.json()) as Anything;
        return [response.status, answer.detail?.[0]?.loc ?? answer.detail ?? answer];
      };
      const id = unique();
      expect(await parts({ me: "{}" })).toEqual([422, ["body", "me"]]);
      expect(await parts({ [id]: "{" })).toEqual([422, ["body", id]]);
      expect(await parts({ [id]: "{}" })).toEqual([422, ["body", id, "inputs"]]);
      expect(await parts({ [id]: "{}", [`${id}.inputs`]: "[1]" })).toEqual([422, ["body", id, "inputs"]]);
      expect(await parts({ [id]: "{}", [`${id}.picture`]: "{}" })).toEqual([422, ["body", `${id}.picture`]]);
      expect(await parts({ [id]: '{"split": 1}' }, "PATCH")).toEqual([422, ["body", id, "split"]]);
      expect(await parts({ [id]: "{}" }, "PATCH")).toEqual([404, "Example not found"]);
      expect(await api.get(`/examples/count?dataset=${dataset}`)).toBe(0);
      const dashless = id.replaceAll("-", "").toUpperCase();
      const taken = await parts({ [dashless]: "{}", [`${dashless}.inputs`]: '{"a": 1}' });
      expect(taken).toEqual([201, { count: 1, example_ids: [id], as_of: expect.any(String) }]);
      expect(await api.get(`/examples/${id}`)).toMatchObject({ inputs: { a: 1 } });
    });
  });
}
