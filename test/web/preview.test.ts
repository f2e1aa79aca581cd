import { describe, expect, it } from "vitest";
import { previewOf, WHOLE_PAYLOAD } from "../../src/platform/contract/preview.ts";
import { decimalsFor, percent } from "../../web/src/ui/format.ts";

const user = (content: unknown) => ({ role: "user", content });
const CHAT = {
  messages: [
    { role: "system", content: "Be brief." },
    user("Where is my order?"),
    { role: "assistant", content: "", tool_calls: [{ function: { name: "look_up" } }] },
    { role: "tool", content: '{"status": "shipped"}' },
    { role: "assistant", content: "It is on its way." },
    user("Thank you."),
  ],
  customer: "c-7",
};

describe("the preview of a payload", () => {
  it.each([
    ["the last message of the user", CHAT, "inputs", "Thank you."],
    ["the last message of the model", CHAT, "outputs", "It is on its way."],
    ["a list of messages", CHAT.messages, "inputs", "Thank you."],
    ["blocks of text", { messages: [user([{ type: "text", text: "With a picture" }])] }, "inputs", "With a picture"],
    ["a LangChain message", { messages: [{ type: "human", content: "Hello" }] }, "inputs", "Hello"],
    ["the last message, where no message has the role", { messages: [user("Hello")] }, "outputs", "Hello"],
    ["the only text", { capital: "Paris" }, "outputs", "Paris"],
    ["the main text of inputs", { answer: "no", question: "Why?" }, "inputs", "Why?"],
    ["the main text of outputs", { answer: "no", question: "Why?" }, "outputs", "no"],
    ["JSON without a known key", { a: 1, b: "x" }, "inputs", '{"a":1,"b":"x"}'],
    ["JSON of an empty conversation", { messages: [] }, "inputs", '{"messages":[]}'],
  ] as const)("is %s", (_, payload, side, text) => {
    expect(previewOf(payload, side)).toBe(text);
  });

  it("is the value of the key that was chosen, where the payload has it", () => {
    expect(previewOf(CHAT, "inputs", "customer")).toBe("c-7");
    expect(previewOf(CHAT, "inputs", "messages")).toBe("Thank you.");
    expect(previewOf({ total: { sum: 3 } }, "outputs", "total")).toBe('{"sum":3}');
    expect(previewOf(CHAT, "inputs", "missing")).toBe("Thank you.");
    expect(previewOf({ capital: "Paris" }, "outputs", WHOLE_PAYLOAD)).toBe('{"capital":"Paris"}');
  });
});

it.each([
  [[0.0833, 1, undefined], 3],
  [[2.5, 4], 2],
  [[12.25, 3], 1],
  [[250.5], 0],
  [[1, 5, 3], undefined],
  [[], undefined],
])("numbers of a column, as %j, have the same precision", (values, decimals) => {
  expect(decimalsFor(values)).toBe(decimals);
});

describe("percentages", () => {
  it("are 0 and 100 only if the fraction is", () => {
    expect([0, 0.0004, 0.004, 0.1234, 0.9996, 1].map(percent)).toEqual([
      "0 %",
      "0.04 %",
      "0.4 %",
      "12.3 %",
      ">99.9 %",
      "100 %",
    ]);
  });
});
