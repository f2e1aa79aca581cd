import { describe, expect, it } from "vitest";
import { questionOf } from "../../web/src/pages/threads/interrupt/interrupt-choices.ts";

/** What each choice is resumed with, when `written` is what people make of its draft. */
const resumes = (value: unknown, written: unknown = "text") =>
  Object.fromEntries(
    questionOf({ id: "1", value }).choices.map(({ label, draft, resume }) => [
      label,
      resume(draft === undefined ? undefined : written),
    ]),
  );

describe("an interrupt is answered in the form that its graph reads", () => {
  it("of a plain question: yes, or a text", () => {
    expect(questionOf({ id: "1", value: "Go on?" })).toMatchObject({ text: "Go on?" });
    expect(resumes("Go on?")).toEqual({ Approve: true, Respond: "text" });
    expect(questionOf({ id: "1" }).text).toBeUndefined();
  });

  it("of one that lists its decisions", () => {
    const value = { question: "Refund?", amount: 5, allowed_decisions: ["approve", "edit", "reject"] };
    expect(resumes(value, { amount: 4 })).toMatchObject({
      Approve: { decision: "approve" },
      Edit: { decision: "edit", amount: 4 },
    });
    expect(resumes(value, "").Reject).toEqual({ decision: "reject" });
    expect(questionOf({ id: "1", value }).choices[1]?.draft).toEqual({ amount: 5 });
  });

  it("of LangGraph's HumanInterrupt, as a list if the question was a list", () => {
    const ask = (config: object) => ({ action_request: { action: "mail", args: { to: "a" } }, config });
    expect(resumes([ask({ allow_ignore: false })], { to: "b" })).toEqual({
      Approve: [{ type: "accept", args: null }],
      Edit: [{ type: "edit", args: { action: "mail", args: { to: "b" } } }],
      Respond: [{ type: "response", args: { to: "b" } }],
    });
    expect(resumes(ask({ allow_accept: false, allow_edit: false, allow_respond: false }))).toEqual({
      Ignore: { type: "ignore", args: null },
    });
  });

  it("of LangChain's review of tool calls: one decision per call, and only decisions that all calls allow", () => {
    const value = {
      action_requests: [
        { name: "mail", args: { to: "a" } },
        { name: "delete", args: { id: 1 } },
      ],
      review_configs: [
        { allowed_decisions: ["approve", "edit", "reject"] },
        { allowed_decisions: ["approve", "reject"] },
      ],
    };
    expect(resumes(value, "no")).toEqual({
      Approve: { decisions: [{ type: "approve" }, { type: "approve" }] },
      Reject: {
        decisions: [
          { type: "reject", message: "no" },
          { type: "reject", message: "no" },
        ],
      },
    });
    const single = { action_requests: [{ name: "mail", args: { to: "a" } }] };
    expect(resumes(single, [{ name: "mail", args: { to: "b" } }]).Edit).toEqual({
      decisions: [{ type: "edit", edited_action: { name: "mail", args: { to: "b" } } }],
    });
  });

  it("of a request for a token: by opening its address first, which must be http or https", () => {
    const value = { message: "Let me in", auth_url: "https://example.com/authorize" };
    expect(questionOf({ id: "1", value })).toMatchObject({ text: "Let me in", link: value.auth_url });
    expect(questionOf({ id: "1", value: { auth_url: "javascript:alert(1)" } }).link).toBeUndefined();
  });
});
