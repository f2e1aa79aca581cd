import { AIMessage, SystemMessage } from "@langchain/core/messages";
import { ChatPromptTemplate, MessagesPlaceholder, PromptTemplate } from "@langchain/core/prompts";
import { expect, it } from "vitest";
import { piecesOf, templateOf } from "../../web/src/pages/prompts/template.ts";

const parsed = (value: unknown) => templateOf(JSON.parse(JSON.stringify(value)));

it("reads the messages, variables and placeholders of a chat prompt", () => {
  const template = ChatPromptTemplate.fromMessages([
    new SystemMessage("Plain {text}"),
    new AIMessage({ content: [{ type: "text", text: "part" }], tool_calls: [{ name: "search", args: {}, id: "1" }] }),
    new MessagesPlaceholder("history"),
    ["human", [{ type: "text", text: "See {input}" }]],
  ]);
  expect(parsed(template)).toEqual({
    messages: [
      { role: "System", parts: [{ text: "Plain {text}", format: undefined }] },
      {
        role: "AI",
        parts: [{ text: "part", format: undefined }, { json: [expect.objectContaining({ name: "search" })] }],
      },
      { role: "Messages", parts: [{ text: "{history}", format: "f-string" }] },
      { role: "Human", parts: [{ text: "See {input}", format: "f-string" }] },
    ],
    variables: ["history", "input"],
    placeholders: ["history"],
    schema: undefined,
  });
});

it("reads text prompts, models and schemas, and no other objects", () => {
  const text = JSON.parse(JSON.stringify(PromptTemplate.fromTemplate("Sum up {text}")));
  const template = { messages: [{ role: "Template", parts: [{ text: "Sum up {text}", format: "f-string" }] }] };
  expect(templateOf(text)).toMatchObject({ ...template, variables: ["text"] });
  const sequence = (first: unknown) => ({
    lc: 1,
    id: ["schema", "RunnableSequence"],
    kwargs: { first, last: "model" },
  });
  expect(templateOf(sequence(text))).toMatchObject({ ...template, model: "model" });
  expect(templateOf({ id: ["StructuredPrompt"], kwargs: { messages: [], schema_: { type: "object" } } })).toMatchObject(
    {
      messages: [],
      schema: { type: "object" },
    },
  );
  const unknown = { id: ["Unknown"], kwargs: {} };
  expect(templateOf({ id: ["ChatPromptTemplate"], kwargs: { messages: [unknown, null] } })?.messages).toEqual([
    { role: "Unknown", parts: [{ json: unknown }] },
    { role: "Message", parts: [{ json: null }] },
  ]);
  for (const other of [null, 1, [], {}, { kwargs: null }, { id: 1, kwargs: { messages: "x" } }, sequence(undefined)])
    expect(templateOf(other)).toBe(undefined);
});

it("finds the variables of each format, in time that grows with the text", () => {
  expect(piecesOf("a {b} {{c}} {d}!", "f-string")).toEqual(["a ", "{b}", " {{c}} ", "{d}", "!"]);
  expect(piecesOf("{{b}} {c} {{{d}}}", "mustache")).toEqual(["", "{{b}}", " {c} ", "{{{d}}}", ""]);
  expect(piecesOf("{% if a %}{{ a }}{% endif %}", "jinja2")).toEqual(["{% if a %}", "{{ a }}", "{% endif %}"]);
  expect(piecesOf("{a}", undefined)).toEqual(["{a}"]);
  expect(piecesOf("{a}", "unknown")).toEqual(["{a}"]);
  for (const format of ["f-string", "mustache", "jinja2"]) {
    const text = "{{{".repeat(100_000);
    const start = performance.now();
    expect(piecesOf(text, format).join("")).toBe(text);
    expect(performance.now() - start).toBeLessThan(2_000);
  }
});
