import { calcPrice } from "@pydantic/genai-prices";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { loadPrices, modelOf, type Prices } from "../../src/experiments/traces/usage/prices.ts";
import type { PriceEntry } from "../../src/experiments/traces/usage/rates.ts";
import { type OwnTotals, treeUsage } from "../../src/experiments/traces/usage/tree-usage.ts";
import { firstTokenOf, ownUsage, type RunUsage, trimEvents } from "../../src/experiments/traces/usage/usage.ts";

const NONE: RunUsage = {
  prompt_tokens: null,
  completion_tokens: null,
  total_tokens: null,
  prompt_token_details: null,
  completion_token_details: null,
  prompt_cost: null,
  completion_cost: null,
  total_cost: null,
  prompt_cost_details: null,
  completion_cost_details: null,
};

const usage = (values: Partial<RunUsage>): RunUsage => ({ ...NONE, ...values });
const tokens = (prompt_tokens: number, completion_tokens: number, more: Partial<RunUsage> = {}): RunUsage =>
  usage({ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens, ...more });

const llm = (outputs: unknown, metadata: unknown = {}) => ownUsage({ run_type: "llm", outputs, metadata });
const metadataOf = (input_tokens: number, output_tokens: number) => ({
  input_tokens,
  output_tokens,
  total_tokens: input_tokens + output_tokens,
});

/** As `dumpd` of Python and the tracer of JS serialize a chat message. */
const message = (usage_metadata: unknown) => ({
  lc: 1,
  type: "constructor",
  id: ["langchain", "schema", "messages", "AIMessage"],
  kwargs: { content: "Hello", type: "ai", tool_calls: [], response_metadata: {}, usage_metadata },
});

describe("the usage of a run", () => {
  it("reads LangChain's generations", () => {
    const details = { input_token_details: { cache_read: 4, audio: 0 }, output_token_details: { reasoning: 2 } };
    const outputs = {
      generations: [
        [{ text: "Hello", type: "ChatGeneration", message: message({ ...metadataOf(10, 5), ...details }) }],
      ],
      llm_output: { token_usage: { prompt_tokens: 99, completion_tokens: 99 }, model_name: "gpt-4o" },
    };
    const read = tokens(10, 5, {
      prompt_token_details: { cache_read: 4, audio: 0 },
      completion_token_details: { reasoning: 2 },
    });
    expect(llm(outputs)).toEqual(read);
  });

  it("adds the generations of several prompts, and their details", () => {
    const of = (input: number, cache_read: number) => ({
      message: message({ ...metadataOf(input, 1), input_token_details: { cache_read } }),
    });
    const plain = { text: "", message: { usage_metadata: metadataOf(100, 1) } };
    expect(llm({ generations: [[of(1, 1), of(10, 2)], [plain], [], [{ text: "no message" }]] })).toEqual(
      tokens(111, 3, { prompt_token_details: { cache_read: 3 } }),
    );
    expect(llm({ generations: [plain, plain] })).toEqual(tokens(200, 2));
  });

  it.each([
    [
      "llm_output.token_usage",
      { llm_output: { token_usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } } },
    ],
    ["llmOutput.tokenUsage", { llmOutput: { tokenUsage: { promptTokens: 3, completionTokens: 4, totalTokens: 7 } } }],
    ["llmOutput.estimatedTokenUsage", { llmOutput: { estimatedTokenUsage: { promptTokens: 3, completionTokens: 4 } } }],
    ["a message", { output: message(metadataOf(3, 4)) }],
    ["a message of traceable", { message: { role: "assistant", content: "Hello", usage_metadata: metadataOf(3, 4) } }],
    ["usage without a total", { usage: { input_tokens: 3, output_tokens: 4 } }],
    ["usage with a total of 0", { usage: { input_tokens: 3, output_tokens: 4, total_tokens: 0 } }],
  ])("reads %s", (_, outputs) => expect(llm(outputs)).toEqual(tokens(3, 4)));

  it("reads OpenAI chat completions and responses", () => {
    const chat = {
      object: "chat.completion",
      choices: [{ message: { role: "assistant", content: "Hello" } }],
      usage: {
        prompt_tokens: 20,
        completion_tokens: 8,
        total_tokens: 28,
        prompt_tokens_details: { cached_tokens: 12, audio_tokens: 1 },
        completion_tokens_details: { reasoning_tokens: 5, accepted_prediction_tokens: 0 },
      },
    };
    expect(llm(chat)).toEqual(
      tokens(20, 8, {
        prompt_token_details: { cache_read: 12, audio: 1 },
        completion_token_details: { reasoning: 5, accepted_prediction_tokens: 0 },
      }),
    );
    const response = {
      object: "response",
      usage: {
        input_tokens: 20,
        input_tokens_details: { cached_tokens: 12 },
        output_tokens: 8,
        output_tokens_details: { reasoning_tokens: 5 },
        total_tokens: 28,
      },
    };
    expect(llm(response)).toEqual(
      tokens(20, 8, { prompt_token_details: { cache_read: 12 }, completion_token_details: { reasoning: 5 } }),
    );
  });

  it("adds Anthropic's cache to the prompt", () => {
    const own = { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 100, cache_creation_input_tokens: 30 };
    expect(llm({ type: "message", usage: own })).toEqual(
      tokens(140, 5, { prompt_token_details: { cache_read: 100, cache_creation: 30 } }),
    );
    const cache_creation = { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 };
    expect(llm({ usage: { ...own, cache_creation } })?.prompt_token_details).toEqual({
      cache_read: 100,
      ...cache_creation,
    });
  });

  it("uses the first place that contains usage", () => {
    const places = [
      { usage_metadata: metadataOf(1, 0) },
      {},
      { message: message(metadataOf(3, 0)) },
      { generations: [[{ message: message(metadataOf(4, 0)) }]] },
      { llm_output: { token_usage: metadataOf(5, 0) } },
      { llmOutput: { tokenUsage: metadataOf(6, 0), estimatedTokenUsage: metadataOf(7, 0) } },
      { llmOutput: { estimatedTokenUsage: metadataOf(7, 0) } },
      { usage: metadataOf(8, 0) },
    ];
    for (const [index] of places.entries()) {
      const outputs = Object.assign({}, ...places.slice(index).reverse());
      const metadata = index <= 1 ? { usage_metadata: metadataOf(2, 0) } : {};
      expect(llm(outputs, metadata)?.prompt_tokens).toBe(index + 1);
    }
  });

  it("reads costs of any run type, but tokens only of models", () => {
    const usage_metadata = {
      ...metadataOf(1, 2),
      input_cost: 0.1,
      output_cost: 0.2,
      total_cost: 0.4,
      input_cost_details: { cache_read: 0.05 },
      output_cost_details: { reasoning: 0.15, bad: "x" },
    };
    const costs = {
      prompt_cost: 0.1,
      completion_cost: 0.2,
      total_cost: 0.4,
      prompt_cost_details: { cache_read: 0.05 },
      completion_cost_details: { reasoning: 0.15 },
    };
    expect(llm({ usage_metadata })).toEqual(tokens(1, 2, costs));
    expect(ownUsage({ run_type: "embedding", outputs: { usage_metadata }, metadata: {} })).toEqual(tokens(1, 2, costs));
    expect(ownUsage({ run_type: "tool", outputs: { usage_metadata }, metadata: {} })).toEqual(usage(costs));
    const chain = { run_type: "chain", outputs: { usage_metadata: metadataOf(1, 2) }, metadata: {} };
    expect(ownUsage(chain)).toBeUndefined();
  });

  it("ignores what is not a finite non-negative number", () => {
    for (const value of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e300, "5", null, true, [1], { a: 1 }, 5n])
      expect(llm({ usage: { input_tokens: value, output_tokens: value, total_cost: value } })).toBeUndefined();
    expect(llm({ usage: { input_tokens: -1, prompt_tokens: 7, output_tokens: 1.4 } })).toEqual(tokens(7, 1));
    expect(llm({ usage: { output_tokens: 3, input_token_details: { cache_read: "x" } } })).toEqual(
      usage({ completion_tokens: 3, total_tokens: 3 }),
    );
  });

  it("accepts values of any shape", () => {
    const key = fc.constantFrom(
      ...["usage_metadata", "generations", "message", "kwargs", "llm_output", "token_usage", "usage", "lc"],
      ...[
        "input_tokens",
        "input_token_details",
        "cache_creation",
        "cache_read_input_tokens",
        "total_cost",
        "__proto__",
      ],
    );
    const { any } = fc.letrec((tie) => ({
      any: fc.oneof({ depthSize: "medium" }, fc.constantFrom(null, 1, -1, "x", true), tie("list"), tie("object")),
      list: fc.array(tie("any")),
      object: fc.array(fc.tuple(key, tie("any"))).map((entries) => Object.fromEntries(entries)),
    }));
    fc.assert(
      fc.property(any, any, (outputs, metadata) => {
        const read = llm(outputs, metadata);
        for (const value of Object.values(read ?? {}))
          if (typeof value === "number") expect(value).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it("reads a bounded part of long lists and objects", () => {
    const one = { message: { usage_metadata: metadataOf(1, 0) } };
    expect(llm({ generations: [Array(50_000).fill(one)] })?.prompt_tokens).toBe(10_000);
    expect(llm({ generations: [...Array(20_000).fill([]), [one]] })).toBeUndefined();
    const outputs = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`k${n}`, {}]));
    expect(llm({ ...outputs, last: { usage_metadata: metadataOf(1, 0) } })).toBeUndefined();
    const details = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`k${n}`, n]));
    const read = (input_token_details: unknown) =>
      Object.keys(llm({ usage: { input_tokens: 1, input_token_details } })?.prompt_token_details ?? {}).length;
    expect(read(details)).toBe(50);
    expect(read({ ["k".repeat(101)]: 1, k: 1 })).toBe(1);
    const own = (n: number) => ({
      message: { usage_metadata: { input_tokens: 1, input_token_details: { [`k${n}`]: 1 } } },
    });
    const many = llm({ generations: [Array.from({ length: 200 }, (_, n) => own(n))] });
    expect(Object.keys(many?.prompt_token_details ?? {})).toHaveLength(50);
  });

  it("adds details that have the names of methods", () => {
    const one = { message: { usage_metadata: { input_tokens: 1, input_token_details: { constructor: 1 } } } };
    expect(llm({ generations: [[one, one]] })?.prompt_token_details).toEqual({ constructor: 2 });
  });
});

describe("the tokens of a stream", () => {
  const token = (time?: unknown) => ({ name: "new_token", time, kwargs: { token: "Hello" } });

  it("have a first one", () => {
    const us = Date.UTC(2026, 0, 1) * 1000;
    const events = [
      { name: "start", time: "2025-01-01T00:00:00Z" },
      token(),
      token("soon"),
      token("2026-01-01T00:00:00.000200+00:00"),
      token("2026-01-01T01:00:00.000100+01:00"),
      token(us / 1000 + 5),
      null,
    ];
    expect(firstTokenOf(events)).toBe(us + 100);
    expect(firstTokenOf([token(us / 1000)])).toBe(us);
    for (const none of [[], [token()], null, {}, "x"]) expect(firstTokenOf(none)).toBeNull();
  });

  it("are stored without texts, ten at each end", () => {
    const tokens = Array.from({ length: 25 }, (_, n) => token(n));
    const start = { name: "start", kwargs: { a: 1 } };
    const trimmed = trimEvents([start, ...tokens, start]);
    expect(trimmed[0]).toEqual(start);
    expect(trimmed.at(-1)).toEqual(start);
    const times = [...Array(10).keys(), ...Array.from({ length: 10 }, (_, n) => 15 + n)];
    expect(trimmed.slice(1, -1)).toEqual(times.map((time) => ({ name: "new_token", time })));
    expect(trimEvents(tokens.slice(0, 20))).toHaveLength(20);
    expect(trimEvents(tokens.slice(0, 12))).toHaveLength(12);
  });
});

const START = Date.UTC(2026, 0, 1) * 1000;

const entry = (values: Partial<PriceEntry> = {}): PriceEntry => ({
  id: "1",
  name: "house",
  match_pattern: "^house-",
  prompt_cost: 2e-6,
  completion_cost: "0.00001",
  ...values,
});

describe("prices", () => {
  let prices: Prices;
  beforeAll(async () => {
    prices = await loadPrices();
  });

  const costOf = (
    own: RunUsage | undefined,
    model: string | null,
    entries: PriceEntry[] = [],
    provider: string | null = null,
    start_us = START,
  ) => prices.costOf(own, { provider, model, params: null }, start_us, prices.mapOf(entries));

  it("find the model of a run", () => {
    const params = { endpoint_name: "e", model_path: "d", model_id: "c", model_name: "b", model: "a" };
    expect(modelOf({ ls_model_name: "gpt-4o", ls_provider: "openai" }, params)).toEqual({
      provider: "openai",
      model: "gpt-4o",
      params: null,
    });
    for (const [key, name] of Object.entries(params).reverse()) {
      expect(modelOf({}, params).model).toBe(name);
      Reflect.deleteProperty(params, key);
    }
    for (const nothing of [
      null,
      [],
      "x",
      1,
      { ls_model_name: "" },
      { ls_model_name: 1 },
      { ls_model_name: "x".repeat(201) },
    ])
      expect(modelOf(nothing, nothing)).toMatchObject({ provider: null, model: null });
  });

  it("are built in, with the cache at its own price", () => {
    const own = tokens(1000, 100, { prompt_token_details: { cache_read: 400 } });
    expect(costOf(own, "gpt-4o-2024-08-06", [], "openai")).toEqual({
      prompt_cost: 0.002,
      completion_cost: 0.001,
      total_cost: 0.003,
      prompt_cost_details: { cache_read: 0.0005 },
      completion_cost_details: null,
    });
    expect(costOf(own, "nothing-of-the-kind", [], "openai")).toBeUndefined();
    expect(costOf(own, "gpt-4o", [], "ollama")).toBeUndefined();
    expect(costOf(own, null)).toBeUndefined();
    expect(costOf(undefined, "gpt-4o")).toBeUndefined();
    expect(costOf(tokens(10, 0), "text-embedding-3-small", [], "openai")?.total_cost).toBe(0.0000002);
  });

  it.each([
    ["openai", "gpt-4o-mini", "openai"],
    ["openai", "o3", "openai"],
    ["google_genai", "models/gemini-2.5-pro", "google"],
    ["google_vertexai", "gemini-2.5-pro", "google"],
    ["amazon_bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0", "aws"],
    ["azure", "gpt-4o", "azure"],
    ["azure_ai", "gpt-4o", "azure"],
    ["azure_openai", "phi-3-medium-128k-instruct", "azure"],
    ["xai", "grok-4", "x-ai"],
    ["anthropic", "claude-sonnet-4-20250514", "anthropic"],
    ["deepseek", "deepseek-chat", "deepseek"],
    ["perplexity", "sonar", "perplexity"],
    [null, "gpt-4o", "openai"],
  ])("of %s %s are those of the package", (provider, model, providerId) => {
    for (const prompt of [1000, 200_000, 200_001])
      for (const start_us of [START, START + 17 * 3600e6, Date.UTC(2024, 5, 1) * 1000]) {
        const prompt_token_details = { cache_read: 100, cache_creation: 50 };
        const own = tokens(prompt, 77, { prompt_token_details });
        const expected = calcPrice(
          { input_tokens: prompt, output_tokens: 77, cache_read_tokens: 100, cache_write_tokens: 50 },
          model.replace("models/", ""),
          { providerId, timestamp: new Date(start_us / 1000) },
        );
        const found = costOf(own, model, [], provider, start_us);
        expect(found?.prompt_cost).toBeCloseTo(expected?.input_price ?? -1, 11);
        expect(found?.completion_cost).toBeCloseTo(expected?.output_price ?? -1, 11);
        expect(found?.total_cost).toBeCloseTo(expected?.total_price ?? -1, 11);
      }
  });

  it("of Anthropic's cache depend on the lifetime, and count it once", () => {
    const of = (prompt_token_details: Record<string, number>) =>
      costOf(tokens(1000, 0, { prompt_token_details }), "claude-sonnet-4-20250514", [], "anthropic")
        ?.prompt_cost_details;
    expect(of({ ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 100 })).toEqual({
      ephemeral_5m_input_tokens: 0.000375,
      ephemeral_1h_input_tokens: 0.0006,
    });
    expect(of({ cache_creation: 200, ephemeral_1hr_input_tokens: 100 })).toEqual({
      cache_creation: 0.000375,
      ephemeral_1hr_input_tokens: 0.0006,
    });
  });

  it("without a price for their cache lifetime fall back to the price for all lifetimes", () => {
    const of = (prompt_token_details: Record<string, number>, ...rest: [string, PriceEntry[], string | null]) =>
      costOf(tokens(1000, 0, { prompt_token_details }), ...rest)?.prompt_cost_details;
    const hour = { ephemeral_1h_input_tokens: 100 };
    expect(of(hour, "claude-sonnet-4@20250514", [], "google_vertexai")).toEqual({
      ephemeral_1h_input_tokens: 0.000375,
    });
    const priced = [entry({ prompt_cost_details: { cache_creation: 1e-6 } })];
    expect(of({ cache_creation: 100, ...hour }, "house-1", priced, null)).toEqual({ cache_creation: 0.0001 });
  });

  it("that were sent take precedence, part by part", () => {
    const own = tokens(100, 10, { completion_cost: 0.5, completion_cost_details: { reasoning: 0.1 } });
    expect(costOf(own, "house-1", [entry()])).toEqual({
      prompt_cost: 0.0002,
      completion_cost: 0.5,
      total_cost: 0.5002,
      prompt_cost_details: null,
      completion_cost_details: { reasoning: 0.1 },
    });
    expect(costOf(tokens(100, 10, { total_cost: 7 }), "house-1", [entry()])).toMatchObject({
      prompt_cost: 0.0002,
      total_cost: 7,
    });
    expect(costOf(usage({ total_cost: 0.25 }), null)).toEqual({
      prompt_cost: null,
      completion_cost: null,
      total_cost: 0.25,
      prompt_cost_details: null,
      completion_cost_details: null,
    });
  });

  it("have no fee per request if the client sent both sides", () => {
    const sent = tokens(10, 10, { prompt_cost: 0.001, completion_cost: 0.002 });
    expect(costOf(sent, "sonar", [], "perplexity")?.total_cost).toBe(0.003);
    expect(costOf(tokens(10, 10), "sonar", [], "perplexity")?.total_cost).toBeCloseTo(0.012_02);
  });

  it("of the workspace take precedence over built-in ones", () => {
    const total = (entries: PriceEntry[]) => costOf(tokens(1000, 0), "gpt-4o", entries, "openai")?.total_cost;
    expect(total([entry({ match_pattern: "^gpt-4o$", prompt_cost: 1 })])).toBe(1000);
    expect(total([entry()])).toBe(0.0025);
  });

  it("of the workspace are for a provider, and for runs from a time on", () => {
    const total = (entries: Partial<PriceEntry>[], provider: string | null, start_us = START) => {
      const priced = entries.map((values) => entry(values));
      return costOf(tokens(1, 0), "house-1", priced, provider, start_us)?.total_cost;
    };
    expect(total([{ provider: "us", prompt_cost: 1 }], "us")).toBe(1);
    expect(total([{ provider: "us", prompt_cost: 1 }], "them")).toBeUndefined();
    expect(total([{ provider: "us", prompt_cost: 1 }], null)).toBeUndefined();
    const versions = [
      { prompt_cost: 1 },
      { prompt_cost: 2, start_time: "2025-12-01T00:00:00Z" },
      { prompt_cost: 4, start_time: "2026-06-01T00:00:00Z" },
      { prompt_cost: 3, start_time: "2026-01-01T00:00:00Z" },
    ];
    expect(total(versions, null)).toBe(3);
    expect(total(versions, null, START - 1)).toBe(2);
    expect(total(versions, null, START - 365 * 86400e6)).toBe(1);
    expect(total(versions, null, START + 365 * 86400e6)).toBe(4);
  });

  it("of the workspace look for the model at their own path", () => {
    const map = prices.mapOf([entry({ match_path: ["deployment"], prompt_cost: 1 }), entry({ prompt_cost: 2 })]);
    const total = (metadata: object, params: object) =>
      prices.costOf(tokens(1, 0), modelOf(metadata, params), START, map)?.total_cost;
    expect(total({}, { deployment: "house-1", model: "other" })).toBe(1);
    expect(total({}, { deployment: "other", model: "house-1" })).toBe(2);
    expect(total({}, { deployment: "other", model: "other" })).toBeUndefined();
    expect(total({ ls_model_name: "other" }, { deployment: "house-1" })).toBeUndefined();
  });

  it("of details apply to all their tokens, and costs are never negative", () => {
    const priced = entry({ prompt_cost_details: { cache_read: 1e-6 }, completion_cost_details: { reasoning: "3e-5" } });
    const own = tokens(100, 10, {
      prompt_token_details: { cache_read: 40, audio: 50 },
      completion_token_details: { reasoning: 4 },
    });
    expect(costOf(own, "house-1", [priced])).toEqual({
      prompt_cost: 0.00016,
      completion_cost: 0.00018,
      total_cost: 0.00034,
      prompt_cost_details: { cache_read: 0.00004 },
      completion_cost_details: { reasoning: 0.00012 },
    });
    const more = tokens(10, 0, { prompt_token_details: { cache_read: 40 } });
    expect(costOf(more, "house-1", [priced])?.prompt_cost).toBe(0.00004);
    const named = entry({ prompt_cost_details: { constructor: 1 } as Record<string, number> });
    expect(costOf(own, "house-1", [named])?.prompt_cost).toBe(0.0002);
  });

  it("add as decimals, to 12 places", () => {
    const cost = (own: RunUsage, values: Partial<PriceEntry>) => costOf(own, "house-1", [entry(values)]);
    expect(cost(tokens(1, 1), { prompt_cost: 0.1, completion_cost: 0.2 })?.total_cost).toBe(0.3);
    expect(cost(tokens(3, 0), { prompt_cost: "0.1" })?.prompt_cost).toBe(0.3);
    expect(cost(tokens(1, 0), { prompt_cost: "0.0000000000005" })?.prompt_cost).toBe(1e-12);
    expect(cost(tokens(1, 0), { prompt_cost: "0.00000000000049" })?.prompt_cost).toBe(0);
    expect(costOf(tokens(0, 0, { prompt_cost: 0.1, completion_cost: 0.2 }), null)?.total_cost).toBe(0.3);
  });

  it.each([
    ["a back reference", { match_pattern: "(a)\\1" }],
    ["a lookahead", { match_pattern: "a(?=b)" }],
    ["a broken pattern", { match_pattern: "(" }],
    ["a long pattern", { match_pattern: "a".repeat(201) }],
    ["many repetitions", { match_pattern: "(a?){500}a{500}" }],
    ["a negative price", { prompt_cost: -1 }],
    ["a price that is no number", { completion_cost: "free" }],
    ["an infinite price", { prompt_cost: Number.POSITIVE_INFINITY }],
    ["a price above 1000", { prompt_cost: 1001 }],
    ["a bad detail", { prompt_cost_details: { cache_read: "" } }],
    ["a bad time", { start_time: "soon" }],
  ])("refuse %s", (_, values) => {
    expect(prices.faultOf(entry(values))).toEqual(expect.any(String));
    expect(costOf(tokens(1, 0), "house-1", [entry(values)])).toBeUndefined();
  });

  it("match without backtracking", () => {
    const slow = entry({ match_pattern: "^(a+)+$" });
    expect(prices.faultOf(slow)).toBeUndefined();
    const started = process.cpuUsage();
    for (let n = 0; n < 20; n++) costOf(tokens(1, 0), `${"a".repeat(150 + n)}!`, [slow]);
    expect(process.cpuUsage(started).user / 1_000).toBeLessThan(5_000);
  });

  it("keep a bounded number of model names", () => {
    const map = prices.mapOf([entry({ match_pattern: "^(house|m)-", prompt_cost: 1 })]);
    const total = (model: string) =>
      prices.costOf(tokens(1, 0), { provider: null, model, params: null }, START, map)?.total_cost;
    for (let n = 0; n < 12_000; n++) expect(total(`m-${n}`)).toBe(1);
  });
});

const own = (run_id: string, parent_run_id: string | null, values: Partial<OwnTotals> = {}): OwnTotals => ({
  run_id,
  parent_run_id,
  run_type: "llm",
  prompt_tokens: null,
  completion_tokens: null,
  total_tokens: null,
  prompt_cost: null,
  completion_cost: null,
  total_cost: null,
  first_token_us: null,
  ...values,
});
const chain = (run_id: string, parent: string | null, values: Partial<OwnTotals> = {}) =>
  own(run_id, parent, { run_type: "chain", ...values });
const counted = (n: number) => ({ prompt_tokens: n, completion_tokens: 1, total_tokens: n + 1 });
const paid = (total_cost: number) => ({ prompt_cost: null, completion_cost: null, total_cost });

describe("the usage of a tree", () => {
  it("adds models and embeddings, whatever the order of the runs", () => {
    const runs = [
      chain("root", null),
      chain("a", "root"),
      own("m1", "a", { ...counted(10), prompt_cost: 0.1, completion_cost: 0.05, total_cost: 0.15 }),
      own("m2", "a", { ...counted(20), prompt_cost: 0.2, total_cost: 0.2 }),
      own("e", "root", { ...counted(5), run_type: "embedding" }),
      chain("b", "root"),
    ];
    for (const order of [runs, runs.toReversed()]) {
      const totals = treeUsage(order);
      expect(totals.get("root")).toEqual({
        prompt_tokens: 35,
        completion_tokens: 3,
        total_tokens: 38,
        prompt_cost: 0.3,
        completion_cost: 0.05,
        total_cost: 0.35,
        first_token_us: null,
      });
      expect(totals.get("a")).toMatchObject({ prompt_tokens: 30, completion_tokens: 2, total_tokens: 32 });
      expect(totals.get("m1")).toMatchObject(counted(10));
      expect(totals.get("b")).toEqual({
        ...totals.get("b"),
        prompt_tokens: null,
        total_tokens: null,
        total_cost: null,
      });
    }
  });

  it("ignores the tokens of other kinds", () => {
    const totals = treeUsage([chain("root", null, counted(10)), own("m", "root", counted(10))]);
    expect(totals.get("root")).toMatchObject(counted(10));
    expect(treeUsage([chain("root", null, counted(10))]).get("root")?.total_tokens).toBeNull();
  });

  it("counts the outermost model with usage", () => {
    const inner = own("inner", "between", { ...counted(10), ...paid(1) });
    const of = (values: Partial<OwnTotals>) =>
      treeUsage([chain("root", null), own("outer", "root", values), chain("between", "outer"), inner]);
    const both = of({ ...counted(12), ...paid(3) });
    for (const id of ["root", "outer"]) expect(both.get(id)).toMatchObject({ ...counted(12), ...paid(3) });
    expect(both.get("inner")).toMatchObject({ ...counted(10), ...paid(1) });
    expect(of({}).get("root")).toMatchObject({ ...counted(10), ...paid(1) });
    const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    expect(of(zero).get("root")).toMatchObject(counted(10));
    expect(of(counted(12)).get("root")).toMatchObject({ ...counted(12), ...paid(1) });
    expect(treeUsage([own("m", null, zero)]).get("m")).toMatchObject(zero);
  });

  it("counts embeddings and tools below a model, too", () => {
    const totals = treeUsage([
      own("m", null, { ...counted(10), ...paid(1) }),
      own("e", "m", { ...counted(5), ...paid(0.25), run_type: "embedding" }),
      own("t", "m", { ...paid(0.5), run_type: "tool" }),
    ]);
    expect(totals.get("m")).toMatchObject({ prompt_tokens: 15, total_tokens: 17, total_cost: 1.75 });
  });

  it("counts costs of other kinds where no run below has any", () => {
    const tool = own("tool", "root", { run_type: "tool", ...paid(0.5) });
    expect(treeUsage([chain("root", null), tool]).get("root")?.total_cost).toBe(0.5);
    expect(treeUsage([chain("root", null, paid(9)), tool]).get("root")?.total_cost).toBe(0.5);
    const model = own("m", "tool", paid(0.25));
    const totals = treeUsage([chain("root", null, paid(9)), tool, model, own("free", "root")]);
    expect(totals.get("root")?.total_cost).toBe(0.25);
    expect(totals.get("free")?.total_cost).toBeNull();
    expect(treeUsage([own("m", null, paid(0))]).get("m")?.total_cost).toBe(0);
  });

  it("adds costs as decimals", () => {
    const models = Array.from({ length: 10 }, (_, n) => own(`m${n}`, "root", paid(0.1)));
    expect(treeUsage([chain("root", null), ...models]).get("root")?.total_cost).toBe(1);
  });

  it("has a run's own first token, else the earliest", () => {
    const at = (first_token_us: number) => ({ first_token_us });
    const totals = treeUsage([
      chain("root", null),
      chain("a", "root"),
      own("m1", "a", at(500)),
      own("m2", "a", at(300)),
      own("late", "root", at(400)),
      own("below", "late", at(100)),
      chain("none", "root"),
    ]);
    expect(totals.get("a")?.first_token_us).toBe(300);
    expect(totals.get("late")?.first_token_us).toBe(400);
    expect(totals.get("root")?.first_token_us).toBe(100);
    expect(totals.get("none")?.first_token_us).toBeNull();
  });

  it("accepts runs without their parents, and cycles", () => {
    const totals = treeUsage([
      own("orphan", "missing", counted(1)),
      own("self", "self", counted(2)),
      chain("a", "c"),
      chain("b", "a"),
      chain("c", "b"),
      own("m", "a", counted(4)),
    ]);
    expect(totals.size).toBe(6);
    expect(totals.get("orphan")).toMatchObject(counted(1));
    expect(totals.get("self")).toMatchObject(counted(2));
    for (const id of ["a", "b", "c"]) expect(totals.get(id)).toMatchObject(counted(4));
  });

  it("is linear: 25,000 runs, 5,000 deep", () => {
    const deep = Array.from({ length: 5_000 }, (_, n) => chain(`c${n}`, n === 0 ? null : `c${n - 1}`));
    const models = Array.from({ length: 20_000 }, (_, n) =>
      own(`m${n}`, `c${n % 5_000}`, { ...counted(1), ...paid(1e-12) }),
    );
    const started = process.cpuUsage();
    const totals = treeUsage([...deep, ...models]);
    expect(process.cpuUsage(started).user / 1_000).toBeLessThan(5_000);
    expect(totals.get("c0")).toMatchObject({
      ...counted(20_000),
      completion_tokens: 20_000,
      total_tokens: 40_000,
      ...paid(2e-8),
    });
    expect(totals.get("c4999")?.prompt_tokens).toBe(4);
  });
});
