/** Files as other programs write them, shortened by hand. */

const jsonl = (...lines: object[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

/** `samples_*.jsonl` of lm-evaluation-harness for a task with two filters: each document comes once for each. */
export const LM_EVAL_TWO_FILTERS = jsonl(
  ...[
    { filter: "strict-match", filtered: ["3", "[invalid]"], exact_match: [1.0, 0.0] },
    { filter: "flexible-extract", filtered: ["3", "18"], exact_match: [1.0, 1.0] },
  ].flatMap(({ filter, filtered, exact_match }) =>
    [
      { question: "Ann has 5 apples and eats 2. How many are left?", answer: "5 - 2 = 3\n#### 3" },
      { question: "A box holds 6 eggs. How many are in 3 boxes?", answer: "6 * 3 = 18\n#### 18" },
    ].map((doc, doc_id) => ({
      doc_id,
      doc,
      target: doc.answer,
      arguments: {
        gen_args_0: { arg_0: `Question: ${doc.question}\nAnswer:`, arg_1: { until: ["Question:"], temperature: 0 } },
      },
      resps: [[doc_id === 0 ? "3" : "There are 18 of them."]],
      filtered_resps: [filtered[doc_id]],
      filter,
      metrics: ["exact_match"],
      doc_hash: `doc-hash-${doc_id}`,
      prompt_hash: `prompt-hash-${doc_id}`,
      target_hash: `target-hash-${doc_id}`,
      exact_match: exact_match[doc_id],
    })),
  ),
);

/** A multiple choice; an old version, which writes lists and no names of metrics; and a metric that is no number. */
export const LM_EVAL_CHOICES = `${jsonl(
  {
    doc_id: 0,
    doc: { query: "The sky is", choices: ["green", "blue"], gold: 1 },
    target: "1",
    arguments: {
      gen_args_0: { arg_0: "The sky is", arg_1: " green" },
      gen_args_1: { arg_0: "The sky is", arg_1: " blue" },
    },
    resps: [[["-4.25", "False"]], [["-0.5", "True"]]],
    filtered_resps: [
      ["-4.25", "False"],
      ["-0.5", "True"],
    ],
    filter: "none",
    metrics: ["acc", "acc_norm"],
    doc_hash: "doc-hash-0",
    acc: 1.0,
    acc_norm: 0.0,
  },
  {
    doc_id: 1,
    doc: { query: "Grass is", choices: ["green", "blue"], gold: 0 },
    target: "0",
    arguments: [
      ["Grass is", " green"],
      ["Grass is", " blue"],
    ],
    resps: [[[-3.5, false]], [[-1.5, true]]],
    filtered_resps: [
      [-3.5, false],
      [-1.5, true],
    ],
    doc_hash: "doc-hash-1",
    acc: 0,
    acc_norm: 0,
    word_perplexity: [-12.5, 3],
  },
)}{"doc_id": 2, "doc": {"query": "NaN or \\"Infinity\\"?"}, "target": "x", "arguments": [["q"]], "resps": [["y"]], "filtered_resps": ["y"], "acc": NaN, "bleu": -Infinity}
{"doc_id": 3, "doc": {"query": "3 - 1?"}, "target": "1", "arguments": [["q", " 1"], ["q", " 2"]], "resps": [], "filtered_resps": [[-Infinity, false], [-0.5, true]], "acc": 1}
`;

const result = (fields: object): object => ({
  id: "b7df157c-0000-4000-8000-000000000000",
  promptId: "cd59d97e",
  promptIdx: 0,
  failureReason: 0,
  namedScores: {},
  metadata: {},
  ...fields,
});

const [FRANCE, PERU] = [{ country: "France" }, { country: "Peru" }];
const PROMPTS = ["Name the capital of {{country}}.", "Capital of {{country}}? One word."];

/** What `promptfoo eval --output results.json` writes in its present form: two providers, one of them with two prompts. */
export const PROMPTFOO = {
  evalId: "eval-aBc-2026-03-01T10:20:30",
  results: {
    version: 3,
    timestamp: "2026-03-01T10:20:30.000Z",
    prompts: [{ raw: PROMPTS[0], label: PROMPTS[0], id: "cd59d97e", provider: "openai:gpt-5", metrics: { score: 1 } }],
    results: [
      result({
        provider: { id: "openai:gpt-5", label: "" },
        prompt: { raw: "Name the capital of France.", label: PROMPTS[0] },
        vars: FRANCE,
        testIdx: 0,
        testCase: {
          description: "easy",
          vars: FRANCE,
          assert: [
            { type: "latency", threshold: 9 },
            { type: "equals", value: "Paris" },
          ],
        },
        response: { output: "Paris", tokenUsage: { total: 12 }, cached: false, cost: 0.001 },
        success: true,
        score: 1,
        namedScores: { tone: 0.5 },
        latencyMs: 1250,
        cost: 0.001,
        gradingResult: { pass: true, score: 1, reason: "All assertions passed", namedScores: {}, componentResults: [] },
      }),
      result({
        provider: { id: "openai:gpt-5", label: "" },
        prompt: { raw: "Capital of France? One word.", label: PROMPTS[1] },
        promptIdx: 1,
        vars: FRANCE,
        testCase: { vars: FRANCE },
        response: { output: { city: "Lyon" } },
        error: 'Expected output "Lyon" to equal "Paris"',
        failureReason: 1,
        success: false,
        score: 0,
        latencyMs: 10,
        gradingResult: { pass: false, score: 0, reason: 'Expected output "Lyon" to equal "Paris"' },
      }),
      result({
        provider: { id: "openai:gpt-5-mini", label: "mini" },
        prompt: { raw: "Name the capital of France.", label: PROMPTS[0] },
        promptIdx: 2,
        vars: FRANCE,
        testCase: { vars: FRANCE },
        response: { output: "Paris" },
        success: true,
        score: 1,
        latencyMs: 20,
        gradingResult: null,
      }),
      result({
        provider: { id: "openai:gpt-5-mini", label: "mini" },
        prompt: { raw: "Name the capital of Peru.", label: PROMPTS[0] },
        promptIdx: 2,
        vars: PERU,
        testCase: { vars: PERU },
        response: { error: "429 Too Many Requests" },
        error: "API call error: 429 Too Many Requests",
        failureReason: 2,
        success: false,
        score: 0,
        latencyMs: 30,
        gradingResult: null,
      }),
    ],
    stats: { successes: 2, failures: 1, errors: 1 },
  },
  config: { description: "Capitals", providers: ["openai:gpt-5", "openai:gpt-5-mini"], tests: [] },
  shareableUrl: null,
};

/** What its function `evaluate` returned in version 2: a list at the top, prompts without labels, errors without a reason. */
export const PROMPTFOO_V2 = {
  version: 2,
  stats: { successes: 1, failures: 1 },
  table: { head: { prompts: [], vars: ["country"] }, body: [] },
  results: [
    {
      provider: { id: "openai:gpt-4" },
      prompt: { raw: "Name the capital of France.", display: PROMPTS[0] },
      vars: FRANCE,
      response: { output: "Lyon" },
      error: "Expected output to equal Paris",
      success: false,
      score: 0,
      namedScores: {},
      latencyMs: 500,
    },
    {
      provider: "openai:gpt-4",
      prompt: { raw: "Name the capital of Peru.", display: PROMPTS[0] },
      vars: PERU,
      error: "Request timed out",
      success: false,
      score: 0,
      latencyMs: 30000,
    },
  ],
};
