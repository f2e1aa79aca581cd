import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { environmentOf, OTHER_VERSIONS, pythonEnvironment } from "../support/python.ts";
import { startService, type TestService } from "../support/service.ts";

const environments: [versions: string, python: string][] = [
  ["the versions of test/python/requirements.txt", await pythonEnvironment()],
];
for (const other of OTHER_VERSIONS) {
  const python = await environmentOf(other);
  if (python) environments.push([`${other.langgraph} on Python ${other.python}`, python]);
}

describe.each(environments)("examples/python with %s", (_, python) => {
  let service: TestService;
  beforeAll(async () => {
    const env = { THREADMILL_PYTHON: python };
    service = await startService({ database: "sqlite", config: "examples/python/langgraph.json", env });
  });
  afterAll(() => service.stop());

  const run = async (thread_id: string, body: object) =>
    (await service.request("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "support_desk", ...body })).body;
  const ask = (thread_id: string, content: string) =>
    run(thread_id, { input: { messages: [{ role: "user", content }] } });
  const newThread = async () => (await service.request("POST", "/threads", {})).body.thread_id as string;

  it("looks up an order", async () => {
    const { messages } = await ask(await newThread(), "Where is order 1042?");
    expect(messages.map(({ type }: { type: string }) => type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(messages.at(-1).content).toBe("Order 1042 (walking boots) is shipped. It arrives: Thursday.");
  });

  it.each([
    ["approve", "$129.00 will be refunded."],
    ["reject", "The refund was refused."],
  ])("waits for a person before a refund, who answers %s", async (decision, answer) => {
    const thread_id = await newThread();
    const { __interrupt__ } = await ask(thread_id, "Refund order 1042");
    expect(__interrupt__[0].value).toEqual({ question: "Refund $129.00 for order 1042 (walking boots)?" });
    const { messages } = await run(thread_id, { command: { resume: { decision } } });
    expect(messages.at(-1).content).toBe(answer);
  });
});
