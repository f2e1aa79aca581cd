import type { Interrupt } from "../../../../src/agent-server/contract/records.ts";

/** A way to answer an interrupt. */
export interface Choice {
  label: string;
  kind: "approve" | "edit" | "respond" | "reject";
  /** What is written first: JSON to edit, or a text. Undefined: a click is the answer. */
  draft?: unknown;
  /** What is resumed with. @param written what was made of the draft */
  resume(written: unknown): unknown;
}

/** An interrupt as people read it. */
export interface Question {
  text: string | undefined;
  /** What else is known, without what the choices are made of. */
  detail: unknown;
  choices: readonly Choice[];
  /** Where a person has to go first. */
  link: string | undefined;
}

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Reads the interrupts that agents usually make: LangChain's review of tool calls (`action_requests`), LangGraph's `HumanInterrupt`
 * (`action_request`), questions that list `allowed_decisions`, and any other value, which is approved with `true` or answered.
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
      ? AGREED
      : Array.isArray(allowed_decisions)
        ? allowed_decisions.map((name) => decision(String(name), detail))
        : PLAIN,
    link: linkOf(auth_url ?? value.url),
  };
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/** Nothing but the web: the value comes from a graph. */
const linkOf = (value: unknown): string | undefined =>
  typeof value === "string" && /^https?:\/\//.test(value) ? value : undefined;

const APPROVE = { label: "Approve", kind: "approve" } as const;
const RESPOND = { label: "Respond", kind: "respond", draft: "" } as const;

const PLAIN: readonly Choice[] = [
  { ...APPROVE, resume: () => true },
  { ...RESPOND, resume: (written) => written },
];

/** To a question for a token (`auth_url`): the answer is the token that is there then, whatever it is resumed with. */
const AGREED: readonly Choice[] = [{ label: "I have agreed there, go on", kind: "approve", resume: () => true }];

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** `{"decision": name}`, and for an edit what there is to change beside it. */
function decision(name: string, detail: Fields): Choice {
  const label = capital(name);
  if (name === "edit") {
    const values = Object.entries(detail).filter(
      ([, value]) => typeof value === "number" || typeof value === "boolean",
    );
    const draft = values.length > 0 ? Object.fromEntries(values) : detail;
    return { label, kind: "edit", draft, resume: (written) => ({ decision: name, ...(written as Fields) }) };
  }
  if (name === "reject")
    return {
      label,
      kind: "reject",
      draft: "",
      resume: (written) => ({ decision: name, ...(written ? { reason: written } : {}) }),
    };
  if (name === "respond")
    return { label, kind: "respond", draft: "", resume: (written) => ({ decision: name, response: written }) };
  return { label, kind: "approve", resume: () => ({ decision: name }) };
}

/** One answer to a tool call, or several together: one decision for each. */
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
      resume: (written) => each((_, index) => ({ type: "edit", edited_action: (written as unknown[])[index] })),
    },
    {
      label: "Reject",
      kind: "reject",
      draft: "",
      resume: (written) => each(() => ({ type: "reject", ...(written ? { message: written } : {}) })),
    },
  ];
  return {
    text: textOf(requests[0]?.description),
    detail: requests,
    choices: choices.filter(({ kind }) => allowed(kind)),
    link: undefined,
  };
}

/** The answer is a list when the question was one. */
function humanInterruptOf(value: Fields, request: Fields, isList: boolean): Question {
  const config = isFields(value.config) ? value.config : {};
  const answer = (type: string, args: unknown) => (isList ? [{ type, args }] : { type, args });
  const choices: [allowed: unknown, choice: Choice][] = [
    [config.allow_accept, { ...APPROVE, resume: () => answer("accept", null) }],
    [
      config.allow_edit,
      {
        label: "Edit",
        kind: "edit",
        draft: request.args ?? {},
        resume: (args) => answer("edit", { action: request.action, args }),
      },
    ],
    [config.allow_respond, { ...RESPOND, resume: (written) => answer("response", written) }],
    [config.allow_ignore, { label: "Ignore", kind: "reject", resume: () => answer("ignore", null) }],
  ];
  return {
    text: textOf(value.description) ?? textOf(request.action),
    detail: request,
    choices: choices.filter(([allowed]) => allowed !== false).map(([, choice]) => choice),
    link: undefined,
  };
}
