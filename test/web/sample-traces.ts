import { randomBytes } from "node:crypto";
import { run, type TestRun, type TraceClient } from "../traces/trace-client.ts";

const message = (name: string, kwargs: object) => ({
  lc: 1,
  type: "constructor",
  id: ["langchain_core", "messages", name],
  kwargs,
});
const usage = (input_tokens: number, output_tokens: number, total_cost: number) => ({
  usage_metadata: { input_tokens, output_tokens, total_cost },
});
const end = (run: TestRun, ms: number): TestRun => ({
  ...run,
  end_time: new Date(Date.parse(run.start_time) + ms).toISOString(),
});

export const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwADBwIAMCbHYQAAAABJRU5ErkJggg==",
  "base64",
);

export const QUESTION = "How do I reset my password?";
export const ANSWER = "Open **Settings › Security** and choose _Reset password_. The link expires after 15 minutes.";

/** A trace of an agent with a plan, a search that fails once, and an answer that is streamed. */
export async function sendAgentTrace(client: TraceClient, fields: Record<string, unknown> = {}) {
  const session = { session_name: "support", ...fields };
  const root = end(
    run({
      name: "support-agent",
      inputs: { messages: [message("HumanMessage", { content: QUESTION })] },
      outputs: {
        messages: [message("HumanMessage", { content: QUESTION }), message("AIMessage", { content: ANSWER })],
      },
      tags: ["production"],
      extra: { metadata: { thread_id: "thread-7", customer: "acme" }, runtime: { sdk: "langsmith-js" } },
      ...session,
    }),
    4_200,
  );
  const node = (name: string, at: number, ms: number) =>
    end(
      run({
        name,
        at,
        parent: root,
        inputs: { question: QUESTION },
        outputs: { next: "search" },
        extra: { metadata: { langgraph_node: name } },
        ...session,
      }),
      ms,
    );
  const plan = node("plan", 20, 900);
  const search = node("search", 950, 1_400);
  const answer = node("answer", 2_400, 1_780);
  const planModel = end(
    run({
      name: "gpt-4.1-mini",
      run_type: "llm",
      at: 40,
      parent: plan,
      inputs: {
        messages: [
          [
            message("SystemMessage", { content: "Plan the next step. Search before you answer." }),
            message("HumanMessage", { content: QUESTION }),
          ],
        ],
      },
      outputs: {
        generations: [
          [
            {
              text: "",
              generation_info: {},
              message: message("AIMessage", {
                content: "",
                tool_calls: [{ id: "call-1", name: "search_docs", args: { query: "reset password" } }],
              }),
            },
          ],
        ],
      },
      extra: { metadata: { ls_model_name: "gpt-4.1-mini", ...usage(212, 18, 0.00011) } },
      ...session,
    }),
    840,
  );
  const profile = end(
    run({
      name: "load_profile",
      run_type: "tool",
      at: 60,
      parent: plan,
      inputs: { customer: "acme" },
      outputs: { output: { plan: "team", language: "en" } },
      ...session,
    }),
    310,
  );
  const failed = end(
    run({
      name: "search_docs",
      run_type: "tool",
      at: 960,
      parent: search,
      inputs: { query: "reset password" },
      outputs: undefined,
      error:
        "TimeoutError: The index did not respond within 500 ms\n    at search (/app/search.ts:14:9)\n    at run (/app/agent.ts:40:3)",
      ...session,
    }),
    520,
  );
  const retried = end(
    run({
      name: "search_docs",
      run_type: "retriever",
      at: 1_500,
      parent: search,
      inputs: { query: "reset password" },
      outputs: {
        documents: [{ page_content: "Settings › Security › Reset password", metadata: { source: "help/42" } }],
      },
      ...session,
    }),
    840,
  );
  const answerModel = end(
    run({
      name: "gpt-4.1",
      run_type: "llm",
      at: 2_420,
      parent: answer,
      inputs: {
        model: "gpt-4.1",
        messages: [
          { role: "system", content: "Answer from the documents." },
          { role: "user", content: QUESTION },
          {
            role: "assistant",
            content: null,
            tool_calls: [
              {
                id: "call-1",
                type: "function",
                function: { name: "search_docs", arguments: '{"query":"reset password"}' },
              },
            ],
          },
          { role: "tool", tool_call_id: "call-1", content: "Settings › Security › Reset password" },
        ],
      },
      outputs: { choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: ANSWER } }] },
      events: [{ name: "new_token", time: "2026-01-31T12:00:02.900Z" }],
      extra: {
        metadata: { ls_model_name: "gpt-4.1", ls_provider: "openai", ...usage(540, 64, 0.0016) },
        invocation_params: { model: "gpt-4.1", temperature: 0.2 },
      },
      ...session,
    }),
    1_700,
  );
  const all = [root, plan, planModel, profile, search, failed, retried, answer, answerModel];
  await client.post(...all);
  return { root, plan, planModel, search, failed, retried, answer, answerModel };
}

/** A trace with this number of runs below the root: steps with a model call each. */
export async function sendLargeTrace(client: TraceClient, runs: number): Promise<TestRun> {
  const root = end(run({ name: "large", session_name: "large" }), runs * 10);
  const below: TestRun[] = [];
  for (let i = 0; below.length < runs; i++) {
    const step = end(run({ name: `step ${i}`, at: i * 40, parent: root, session_name: "large" }), 38);
    const inner = end(run({ name: "inner", at: i * 40 + 2, parent: step, session_name: "large" }), 34);
    const model = end(
      run({ name: "model", run_type: "llm", at: i * 40 + 4, parent: inner, session_name: "large" }),
      20,
    );
    const tool = end(
      run({ name: "tool", run_type: "tool", at: i * 40 + 25, parent: inner, session_name: "large" }),
      10,
    );
    below.push(step, inner, model, tool);
  }
  await client.post(root, ...below.slice(0, runs));
  return root;
}

/** Traces of a week of a project, for pictures. */
export async function sendProject(client: TraceClient, session_name: string, traces: number): Promise<void> {
  const questions = [QUESTION, "Where is my invoice?", "Can I change the plan?", "The export fails with error 500"];
  const runs = Array.from({ length: traces }, (_, i) => {
    const seed = randomBytes(2).readUInt16BE(0);
    return end(
      run({
        name: "support-agent",
        run_type: i % 5 === 0 ? "llm" : "chain",
        start_time: new Date(Date.now() - i * 600_000).toISOString(),
        dotted_order: undefined,
        inputs: { question: questions[i % 4] },
        outputs: { answer: i % 2 === 0 ? ANSWER : "I have forwarded this to a colleague." },
        ...(i % 9 === 4 && { error: "RateLimitError: 429 Too many requests", outputs: undefined }),
        tags: i % 3 === 0 ? ["production"] : [],
        extra: { metadata: usage(100 + (seed % 900), 20 + (seed % 90), 0.0001 + (seed % 90) / 10_000) },
        session_name,
      }),
      400 + (seed % 4_000),
    );
  });
  await client.post(...runs);
}
