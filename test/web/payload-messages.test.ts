import { describe, expect, it } from "vitest";
import { type Message, partsOf, roleOf, toolResultsOf } from "../../web/src/pages/threads/conversation/messages.ts";
import { sectionsOf } from "../../web/src/pages/traces/run/payload-messages.ts";

/** What a page shows of a message: `role: text [calls] <result of a call>`. */
const line = (message: Message) => {
  const { text, images, reasoning, others } = partsOf(message);
  const calls = (message.tool_calls ?? []).map(({ id, name, args }) => `[${id} ${name} ${JSON.stringify(args)}]`);
  const more = [
    ...(reasoning ? [`(${reasoning})`] : []),
    ...images.map((url) => `{${url.slice(0, 14)}}`),
    ...(message.tool_call_id ? [`<${message.tool_call_id}${message.status === "error" ? " failed" : ""}>`] : []),
    ...others.map((other) => JSON.stringify(other)),
  ];
  return [`${roleOf(message)}:`, text, ...calls, ...more].filter(Boolean).join(" ");
};
const shown = (payload: unknown) =>
  sectionsOf(payload).map((section) => {
    const name = section.name ? [section.name] : [];
    if (section.kind === "messages") return [...name, ...section.messages.map(line)];
    return [...name, section.kind === "text" ? section.text : section.value];
  });
const lc = (name: string, kwargs: object) => ({
  lc: 1,
  type: "constructor",
  id: ["langchain_core", "messages", name],
  kwargs,
});
const PNG = "data:image/png;base64,AAAA";

describe("the messages in a payload", () => {
  it("are recognized in LangChain constructors, one list per prompt, and in generations", () => {
    expect(
      shown({
        messages: [
          [
            lc("SystemMessage", { content: "Be short." }),
            lc("HumanMessage", { content: [{ type: "text", text: "Weather?" }] }),
            lc("AIMessageChunk", { content: "", tool_calls: [{ id: "c1", name: "weather", args: { city: "Lima" } }] }),
            lc("ToolMessage", { content: "sunny", tool_call_id: "c1", status: "success" }),
          ],
        ],
      }),
    ).toEqual([
      ["messages", "system: Be short.", "user: Weather?", 'agent: [c1 weather {"city":"Lima"}]', "tool: sunny <c1>"],
    ]);
    const message = lc("AIMessage", { content: "Sunny.", additional_kwargs: {} });
    expect(
      shown({ generations: [[{ text: "Sunny.", message, generation_info: {} }]], llm_output: { model: "m" } }),
    ).toEqual([
      ["generations", "agent: Sunny."],
      ["Other fields", { llm_output: { model: "m" } }],
    ]);
    expect(shown({ generations: [[{ text: "plain", generationInfo: {} }]] })).toEqual([
      ["generations", "agent: plain"],
    ]);
  });

  it("are recognized flat, stored, as tuples, and as `{role, content}`", () => {
    expect(
      shown({ messages: [{ type: "human", content: "a" }, { type: "ai", data: { content: "b" } }, ["user", "c"]] }),
    ).toEqual([["messages", "user: a", "agent: b", "user: c"]]);
    expect(shown({ role: "assistant", content: "Hi" })).toEqual([["agent: Hi"]]);
    expect(shown({ output: { role: "assistant", content: "Hi" } })).toEqual([["output", "agent: Hi"]]);
  });

  it("are recognized in OpenAI chat completions and responses", () => {
    const call = { id: "c1", type: "function", function: { name: "add", arguments: '{"a":1}' } };
    expect(
      shown({
        model: "gpt",
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: { url: PNG } }] },
          { role: "assistant", content: null, tool_calls: [call] },
          { role: "tool", tool_call_id: "c1", content: "2" },
        ],
      }),
    ).toEqual([
      ["messages", "user: {data:image/png}", 'agent: [c1 add {"a":1}]', "tool: 2 <c1>"],
      ["Other fields", { model: "gpt" }],
    ]);
    expect(
      shown({ choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "2" } }], id: 7 }),
    ).toEqual([
      ["choices", "agent: 2"],
      ["Other fields", { id: 7 }],
    ]);
    expect(
      shown({
        instructions: "Be short.",
        input: [
          { role: "user", content: [{ type: "input_text", text: "1 + 1" }] },
          { type: "reasoning", summary: [{ type: "summary_text", text: "Add." }] },
          { type: "function_call", call_id: "c2", name: "add", arguments: "{" },
          { type: "function_call_output", call_id: "c2", output: "2" },
          { type: "message", role: "assistant", content: [{ type: "output_text", text: "Two" }] },
        ],
      }),
    ).toEqual([
      ["instructions", "Be short."],
      ["input", "user: 1 + 1", "agent: (Add.)", 'agent: [c2 add "{"]', "tool: 2 <c2>", "agent: Two"],
    ]);
  });

  it("are recognized in Anthropic blocks, with results apart from the message", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
    expect(
      shown({
        system: "Be short.",
        messages: [
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Look it up." },
              { type: "text", text: "One moment." },
              { type: "tool_use", id: "t1", name: "find", input: { q: "x" } },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "no" }], is_error: true },
            ],
          },
          { role: "user", content: [image, { type: "text", text: "And this?" }] },
        ],
      }),
    ).toEqual([
      ["system", "Be short."],
      [
        "messages",
        'agent: One moment. [t1 find {"q":"x"}] (Look it up.)',
        "tool: no <t1 failed>",
        "user: And this? {data:image/png}",
      ],
    ]);
  });

  it("are recognized in the parts of OpenTelemetry and Gemini", () => {
    expect(
      shown({
        messages: [
          { role: "user", parts: [{ type: "text", content: "Weather?" }] },
          { role: "assistant", parts: [{ type: "tool_call", id: "o1", name: "weather", arguments: { city: "Lima" } }] },
          { role: "tool", parts: [{ type: "tool_call_response", id: "o1", response: { sky: "clear" } }] },
          { role: "model", parts: [{ text: "Clear." }] },
        ],
      }),
    ).toEqual([
      [
        "messages",
        "user: Weather?",
        'agent: [o1 weather {"city":"Lima"}]',
        'tool: {"sky":"clear"} <o1>',
        "agent: Clear.",
      ],
    ]);
  });

  it("are joined to their results by id", () => {
    const [section] = sectionsOf([
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "find", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "yes" }] },
    ]);
    const messages = section?.kind === "messages" ? section.messages : [];
    expect(toolResultsOf(messages).get("t1")?.content).toBe("yes");
  });

  it("are not recognized in other payloads, which are shown as texts and trees", () => {
    expect(shown({ question: "Why?", top_k: 3 })).toEqual([
      ["question", "Why?"],
      ["Other fields", { top_k: 3 }],
    ]);
    for (const payload of [
      { messages: [] },
      { rows: [["a", "b"]] },
      { data: { content: 1 } },
      { messages: [{ role: "user", content: "a" }, 7] },
      null,
      [1],
      { lc: 1, id: ["x", "Tool"], kwargs: {} },
    ])
      expect(shown(payload)).toEqual([[payload]]);
  });

  it("leave room: a payload with many texts is a tree after the first ones", () => {
    const sections = sectionsOf(Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key ${i}`, "text"])));
    expect(sections).toHaveLength(21);
    expect(
      Object.keys(sections.at(-1)?.kind === "json" ? (sections.at(-1) as { value: object }).value : {}),
    ).toHaveLength(4_980);
  });

  it("have no images of other hosts or types", () => {
    for (const url of [
      "https://host/a.png",
      "data:image/svg+xml;base64,AAAA",
      "data:text/html;base64,AAAA",
      "javascript:alert(1)",
    ])
      expect(partsOf({ content: [{ type: "image_url", image_url: { url } }] })).toMatchObject({
        images: [],
        others: [{}],
      });
  });
});
