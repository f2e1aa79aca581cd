import type { Interrupt } from "../../../../../src/agent-server/contract/records.ts";
import { capitalized } from "../../../ui/format.ts";

/** A possible answer to an interrupt. */
export interface Choice {
  label: string;
  kind: "approve" | "edit" | "respond" | "reject";
  /** Initial value to edit, as JSON or text. Undefined if a click submits the answer. */
  draft?: unknown;
  /** Returns the value to resume the run with. @param answer the edited draft */
  resume(answer: unknown): unknown;
}

/** An interrupt, parsed for display. */
export interface Question {
  text: string | undefined;
  /** Part of the interrupt value that is shown as a tree below the text. */
  detail: unknown;
  choices: readonly Choice[];
  /** URL that is shown as a link above the choices, for example of an authorization page. */
  link: string | undefined;
}

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Parses an interrupt. Supports LangChain's review of tool calls (`action_requests`), LangGraph's `HumanInterrupt` (`action_request`) and
 * values with `allowed_decisions` or `auth_url`. For all other interrupts, the choices resume with `true` or with text.
 */
export function questionOf({ value }: Interrupt): Question {
  if (isFields(value) && Array.isArray(value.action_requests))
    return reviewOf(value, value.action_requests as Fields[]);
  const [first] = [value].flat() as unknown[];
  if (isFields(first) && isFields(first.action_request))
    return humanInterruptOf(first, first.action_request, Array.isArray(value));
  if (!isFields(value)) return { text: textOf(value), detail: undefined, choices: PLAIN, link: undefined };
  const { question, message, description, text, allowed_decisions, auth_url, ...detail } = value;
  return {
    text: [question, message, description, text].map(textOf).find((each) => each !== undefined),
    detail,
    choices: linkOf(auth_url)
      ? AUTHORIZED
      : Array.isArray(allowed_decisions)
        ? allowed_decisions.map((name) => decision(String(name), detail))
        : PLAIN,
    link: linkOf(auth_url ?? value.url),
  };
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/** Accepts only http and https URLs, because the value comes from a graph. */
const linkOf = (value: unknown): string | undefined =>
  typeof value === "string" && /^https?:\/\//.test(value) ? value : undefined;

const APPROVE = { label: "Approve", kind: "approve" } as const;
const RESPOND = { label: "Respond", kind: "respond", draft: "" } as const;

const PLAIN: readonly Choice[] = [
  { ...APPROVE, resume: () => true },
  { ...RESPOND, resume: (answer) => answer },
];

/** Choices for a token request (`auth_url`). The resumed run reads the stored token, so the resume value is ignored. */
const AUTHORIZED: readonly Choice[] = [{ label: "Access authorized: continue", kind: "approve", resume: () => true }];

/** Returns a choice that resumes with `{"decision": name}`, plus the edited fields, the reason or the response, if any. */
function decision(name: string, detail: Fields): Choice {
  const label = capitalized(name);
  if (name === "edit") {
    const values = Object.entries(detail).filter(
      ([, value]) => typeof value === "number" || typeof value === "boolean",
    );
    const draft = values.length > 0 ? Object.fromEntries(values) : detail;
    return { label, kind: "edit", draft, resume: (answer) => ({ decision: name, ...(answer as Fields) }) };
  }
  if (name === "reject")
    return {
      label,
      kind: "reject",
      draft: "",
      resume: (answer) => ({ decision: name, ...(answer ? { reason: answer } : {}) }),
    };
  if (name === "respond")
    return { label, kind: "respond", draft: "", resume: (answer) => ({ decision: name, response: answer }) };
  return { label, kind: "approve", resume: () => ({ decision: name }) };
}

/** Parses a review of tool calls. The chosen decision applies to all calls. */
function reviewOf(value: Fields, requests: readonly Fields[]): Question {
  const configs = (Array.isArray(value.review_configs) ? value.review_configs : []) as Fields[];
  const allowed = (name: string) =>
    configs.length === 0 ||
    configs.every(({ allowed_decisions }) => !Array.isArray(allowed_decisions) || allowed_decisions.includes(name));
  const each = (decide: (request: Fields, index: number) => unknown) => ({ decisions: requests.map(decide) });
  const choices: Choice[] = [
    { ...APPROVE, resume: () => each(() => ({ type: "approve" })) },
    {
      label: "Edit",
      kind: "edit",
      draft: requests.map(({ name, args, arguments: given }) => ({ name, args: args ?? given })),
      resume: (answer) => each((_, index) => ({ type: "edit", edited_action: (answer as unknown[])[index] })),
    },
    {
      label: "Reject",
      kind: "reject",
      draft: "",
      resume: (answer) => each(() => ({ type: "reject", ...(answer ? { message: answer } : {}) })),
    },
  ];
  return {
    text: textOf(requests[0]?.description),
    detail: requests,
    choices: choices.filter(({ kind }) => allowed(kind)),
    link: undefined,
  };
}

/** @param isList whether the interrupt value is a list, in which case the answer must be a list, too */
function humanInterruptOf(value: Fields, request: Fields, isList: boolean): Question {
  const config = isFields(value.config) ? value.config : {};
  const resume = (type: string, args: unknown) => (isList ? [{ type, args }] : { type, args });
  const choices: [allowed: unknown, choice: Choice][] = [
    [config.allow_accept, { ...APPROVE, resume: () => resume("accept", null) }],
    [
      config.allow_edit,
      {
        label: "Edit",
        kind: "edit",
        draft: request.args ?? {},
        resume: (args) => resume("edit", { action: request.action, args }),
      },
    ],
    [config.allow_respond, { ...RESPOND, resume: (answer) => resume("response", answer) }],
    [config.allow_ignore, { label: "Ignore", kind: "reject", resume: () => resume("ignore", null) }],
  ];
  return {
    text: textOf(value.description) ?? textOf(request.action),
    detail: request,
    choices: choices.filter(([allowed]) => allowed !== false).map(([, choice]) => choice),
    link: undefined,
  };
}
