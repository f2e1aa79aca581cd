import { HttpAgent } from "@ag-ui/client";
import { HttpAgent as HttpAgent0 } from "ag-ui-client-0";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AgUiProjector, type RunEnd } from "../../src/agent-server/protocols/ag-ui/projector.ts";

const clients = [
  ["1.0.0", HttpAgent, "1.0"],
  ["0.0.59", HttpAgent0 as unknown as typeof HttpAgent, undefined],
] as const;

type Event = Parameters<AgUiProjector["take"]>[0][0];

const TASKS = ["a:1", "a:2", 'b"\\:3', 'b"\\:3|c:4'];
const task = fc.constantFrom(...TASKS);
const message_id = fc.constantFrom("m1", "m2", "m3");
const call_id = fc.constantFrom("c1", "c2", "c3");

const event = (name: string, data: unknown): Event => ({ event: name, data: JSON.stringify(data) });
const taskEvent = (path: string, body: object): Event => {
  const parts = path.split("|");
  const [name, id] = (parts.pop() as string).split(":");
  return event(["tasks", ...parts].join("|"), { id, name, ...body });
};

const content = fc.oneof(
  fc.constantFrom("", "text"),
  fc.array(
    fc.constantFrom(
      { type: "text", text: "x" },
      { type: "thinking", thinking: "y" },
      { type: "reasoning", reasoning: "" },
    ),
    { maxLength: 2 },
  ),
);
const chunk = fc.record({
  index: fc.nat(1),
  id: fc.option(call_id),
  name: fc.option(fc.constant("f")),
  args: fc.constantFrom("", "{"),
});
const aiMessage = fc.record(
  {
    type: fc.constant("ai"),
    id: fc.option(message_id),
    content,
    tool_call_chunks: fc.array(chunk, { maxLength: 2 }),
    tool_calls: fc.array(fc.record({ id: call_id, name: fc.constant("f"), args: fc.constant({}) }), { maxLength: 1 }),
    usage_metadata: fc.constantFrom(null, { input_tokens: 1 }),
  },
  { requiredKeys: ["type", "id", "content"] },
);
const toolMessage = fc.record({
  type: fc.constant("tool"),
  id: fc.constantFrom("t1", "t2"),
  content,
  tool_call_id: call_id,
});

/** Events in any order, which no graph would send. */
const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.constantFrom(event("metadata", {}), event("gap", {}), event("values", { n: 1 }), event("values", {})),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(event("custom", null), event("custom|a:1", { name: "n", value: 1 }), event("error", {})),
  },
  { weight: 3, arbitrary: task.map((path) => taskEvent(path, { input: {} })) },
  { weight: 3, arbitrary: task.map((path) => taskEvent(path, { result: {} })) },
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.oneof(aiMessage, toolMessage), task)
      .map(([message, langgraph_checkpoint_ns]) => event("messages", [message, { langgraph_checkpoint_ns }])),
  },
);

const interrupts = [{ id: "i1", value: "?" }, { id: "i2" }];
const ends: RunEnd[] = [
  undefined,
  { status: "success", cancel_action: null, output: '{"n":1,"messages":[{"type":"ai","id":"m1","content":null}]}' },
  { status: "interrupted", cancel_action: null, output: JSON.stringify({ __interrupt__: interrupts }) },
  { status: "interrupted", cancel_action: "interrupt", output: null },
  { status: "error", cancel_action: null, output: null },
];

describe.each(clients)("the AG-UI client in version %s", (_, Agent, protocolVersion) => {
  it("accepts the converted events in any order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyEvent, { maxLength: 40 }), fc.constantFrom(...ends), async (events, end) => {
        const request = { threadId: "t", runId: "r", protocolVersion };
        const projector = new AgUiProjector(request);
        const sent = [...projector.start(), ...projector.take(events), ...projector.finish(end)];
        const body = sent.map(({ data }) => `data: ${data}\n\n`).join("");
        const agent = new Agent({ url: "http://localhost", threadId: "t" });
        agent.fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
        const error = await agent.runAgent({ runId: "r" }).then(
          () => undefined,
          ({ message }) => message,
        );
        expect([undefined, "The run failed.", "The run was cancelled."]).toContain(error);
      }),
      { numRuns: 300 },
    );
  });
});
