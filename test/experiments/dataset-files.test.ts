import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService, type TestService } from "../support/service.ts";
import { type Anything, apiOf, unique } from "./query/api.ts";

describe("files of a dataset", () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());
  const api = apiOf(() => service);

  const upload = async (csv: string, fields: [string, string][]) => {
    const body = new FormData();
    for (const [name, value] of fields) body.append(name, value);
    body.append("file", new Blob([csv], { type: "text/csv" }), "capitals.csv");
    const response = await service.threadmill.fetch(
      new Request("http://localhost/api/v1/datasets/upload", { method: "POST", body }),
    );
    return { status: response.status, body: (await response.json()) as Anything };
  };
  const download = async (id: string, format: string) => {
    const response = await service.threadmill.fetch(new Request(`http://localhost/api/v1/datasets/${id}/${format}`));
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  };
  const datasetOf = async (...examples: object[]) => {
    const { id } = await api.ok("POST", "/datasets", { name: unique() });
    await api.ok(
      "POST",
      "/examples/bulk",
      examples.map((example) => ({ dataset_id: id, ...example })),
    );
    return id as string;
  };
  const KEYS: [string, string][] = [
    ["input_keys", "country"],
    ["input_keys", "hint"],
    ["output_keys", "city"],
  ];

  it("become a dataset with a row for each line of a CSV file", async () => {
    const name = unique();
    const csv = '\ufeffcountry,city,hint,ignored\r\nFrance,Paris,"a ""big"" one,\nreally",x\r\n\r\nPeru,Lima,,007\r\n';
    const { status, body } = await upload(csv, [...KEYS, ["name", name], ["description", "d"], ["data_type", "kv"]]);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      name,
      description: "d",
      data_type: "kv",
      example_count: 2,
      externally_managed: false,
    });
    const examples = await api.get(`/examples?dataset=${body.id}`);
    expect(examples.map(({ inputs, outputs }: Anything) => [inputs, outputs])).toEqual([
      [{ country: "France", hint: 'a "big" one,\nreally' }, { city: "Paris" }],
      [{ country: "Peru", hint: "" }, { city: "Lima" }],
    ]);
    const taken = await upload(csv, [...KEYS, ["name", name]]);
    expect([taken.status, taken.body.detail]).toEqual([409, expect.stringContaining("already exists")]);
    const unnamed = (
      await upload(csv, [
        ["input_keys", "country"],
        ["id", unique()],
      ])
    ).body;
    expect([unnamed.name, unnamed.example_count]).toEqual(["capitals.csv", 2]);
  });

  it("may have any character in their cells and names", async () => {
    const { body } = await upload("a\n\0é\n", [
      ["input_keys", "a"],
      ["name", `\0${unique()}`],
    ]);
    expect((await api.get(`/examples?dataset=${body.id}`))[0].inputs).toEqual({ a: "\ufffdé" });
  });

  it("are refused with a reason, and leave no dataset", async () => {
    const name = unique();
    const refusal = async (csv: string, fields: [string, string][]) => {
      const { status, body } = await upload(csv, [...fields, ["name", name]]);
      return [status, `${body.detail[0].loc[1]}: ${body.detail[0].msg}`];
    };
    expect(await refusal("a,b\n1,2\n", [["input_keys", "c"]])).toEqual([
      422,
      expect.stringContaining('no column "c"; it has "a", "b"'),
    ]);
    expect(await refusal('a\n"1\n', [["input_keys", "a"]])).toEqual([
      422,
      expect.stringContaining("file: Value error, the file is not valid CSV"),
    ]);
    expect(await refusal("", [["input_keys", "a"]])).toEqual([422, expect.stringContaining("no header")]);
    expect(await refusal("a\n1\n", [])).toEqual([422, expect.stringContaining("input_keys")]);
    expect(
      await refusal("a\n1\n", [
        ["input_keys", "a"],
        ["data_type", "table"],
      ]),
    ).toEqual([422, expect.stringContaining("data_type")]);
    const json = await api.send("POST", "/datasets/upload", { name });
    expect([json.status, json.body.detail[0].msg]).toEqual([422, "The body must be multipart/form-data"]);
    expect(await api.get(`/datasets?name=${name}`)).toEqual([]);
  });

  it("have a column for each key as CSV, without formulas", async () => {
    const id = await datasetOf(
      { inputs: { q: "=1+1", n: -2 }, metadata: { level: 1 } },
      { inputs: { q: "b" }, outputs: { a: [1] }, split: "x" },
    );
    const { status, type, text } = await download(id, "csv");
    expect([status, type]).toEqual([200, "text/csv; charset=utf-8"]);
    const [header, ...lines] = text.trimEnd().split("\n");
    expect(header).toBe("id,inputs.q,inputs.n,outputs.a,metadata.level,metadata.dataset_split");
    expect(lines.map((line) => line.slice(37))).toEqual([`'=1+1,-2,,1,"[""base""]"`, 'b,,[1],,"[""x""]"']);
  });

  it("have a line for each example as JSON, in the version that is requested", async () => {
    const id = await datasetOf(...Array.from({ length: 1203 }, (_, n) => ({ inputs: { n } })));
    const [version] = await api.get(`/datasets/${id}/versions`);
    const [example] = await api.get(`/examples?dataset=${id}&limit=1`);
    await api.ok("DELETE", `/examples/${example.id}`);
    const lines = async (path: string) =>
      (await download(id, path)).text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
    expect((await lines("jsonl")).map(({ inputs }: Anything) => inputs.n)).toEqual(
      Array.from({ length: 1202 }, (_, n) => n + 1),
    );
    const all = await lines(`jsonl?as_of=${encodeURIComponent(version.as_of)}`);
    expect([all.length, all[0]]).toEqual([
      1203,
      expect.objectContaining({ id: example.id, inputs: { n: 0 }, metadata: { dataset_split: ["base"] } }),
    ]);
    expect((await download(id, "jsonl?as_of=prod")).status).toBe(404);
    expect((await download(unique(), "jsonl")).status).toBe(404);
  });

  it("are chats in the formats of OpenAI, from texts and messages of any form", async () => {
    const calls = [{ id: "1", name: "search", args: { q: "x" } }];
    const id = await datasetOf(
      { inputs: { input: "Hi" }, outputs: { output: "Hello" } },
      {
        inputs: {
          input: [
            { type: "system", data: { content: "Be brief." } },
            { type: "human", data: { content: "Hi" } },
          ],
        },
        outputs: { output: { type: "ai", data: { content: "Hello" } } },
      },
      {
        inputs: { messages: [{ role: "user", content: "Hi" }] },
        outputs: {
          messages: [
            { lc: 1, type: "constructor", id: ["langchain", "AIMessage"], kwargs: { content: "", tool_calls: calls } },
          ],
        },
      },
    );
    const lines = async (format: string) =>
      (await download(id, format)).text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
    const user = { role: "user", content: "Hi" };
    const assistant = { role: "assistant", content: "Hello" };
    const called = [{ id: "1", type: "function", function: { name: "search", arguments: '{"q":"x"}' } }];
    expect(await lines("openai_ft")).toEqual([
      { messages: [user, assistant] },
      { messages: [{ role: "system", content: "Be brief." }, user, assistant] },
      { messages: [user, { role: "assistant", content: "", tool_calls: called }] },
    ]);
    expect((await lines("openai"))[0]).toEqual({ input: [user], ideal: "Hello" });
    const other = await datasetOf({ inputs: { a: 1, b: 2 }, outputs: { c: 3 } });
    const refused = await service.request("GET", `/api/v1/datasets/${other}/openai_ft`);
    expect([refused.status, refused.body.detail[0].msg]).toEqual([422, expect.stringContaining("#1")]);
  });
});
