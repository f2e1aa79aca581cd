import { Braces } from "lucide-react";
import { useMemo, useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { count } from "../../../ui/format.ts";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { DetailSection } from "../../../ui/layout.tsx";
import { Markdown } from "../../../ui/markdown/markdown.tsx";
import { MessageView } from "../../threads/conversation/message-view.tsx";
import { type Message, toolResultsOf } from "../../threads/conversation/messages.ts";
import { type PayloadSection, sectionsOf } from "./payload-messages.ts";

/** How many of the last messages of a conversation, and how many characters of a text, are shown initially. */
const MAX_MESSAGES = 40;
const MAX_TEXT = 20_000;

/** The inputs or outputs of a run, with a title. */
export function Payload({
  title,
  value,
  isPending = false,
  isPlain,
}: {
  title: string;
  value: unknown;
  isPending?: boolean;
  isPlain?: boolean;
}) {
  const isEmpty = value === null || value === undefined || Object.keys(value).length === 0;
  return (
    <DetailSection title={title}>
      {isEmpty ? (
        <p className="text-table text-text-3">{isPending ? "The run is pending." : "None"}</p>
      ) : (
        <PayloadView title={title} value={value} isPlain={isPlain} />
      )}
    </DetailSection>
  );
}

/**
 * Conversations as messages, texts as Markdown, other values as a tree. All of them can be shown as JSON.
 *
 * @param isPlain shows texts as they are, so that they can be compared character by character
 */
export function PayloadView({ title, value, isPlain = false }: { title: string; value: unknown; isPlain?: boolean }) {
  const [isJson, setJson] = useState(false);
  const sections = useMemo(() => sectionsOf(value), [value]);
  const hasText = sections.some(({ kind }) => kind !== "json");
  return (
    <div className="group/payload relative grid grid-cols-1 divide-y divide-line rounded-lg border border-line bg-raised">
      {hasText && (
        <Button
          look="quiet"
          small
          square
          aria-pressed={isJson}
          aria-label={`${title} as JSON`}
          title={isJson ? "Show as text" : "Show as JSON"}
          className={
            isJson ? "absolute top-1 right-1 z-[1] bg-selected text-accent-text" : "absolute top-1 right-1 z-[1]"
          }
          onClick={() => setJson(!isJson)}
        >
          <Braces size={13} />
        </Button>
      )}
      {isJson ? (
        <div className="min-w-0 py-2 pr-9 pl-3">
          <JsonTree value={value} open={4} />
        </div>
      ) : (
        sections.map((section) => (
          <div key={section.name ?? ""} className={hasText ? "min-w-0 py-2 pr-9 pl-3" : "min-w-0 px-3 py-2"}>
            {section.name && (sections.length > 1 || section.kind === "json") && (
              <p className="mb-1 font-mono text-note text-text-3">{section.name}</p>
            )}
            <Section section={section} isPlain={isPlain} />
          </div>
        ))
      )}
    </div>
  );
}

function Section({ section, isPlain }: { section: PayloadSection; isPlain: boolean }) {
  if (section.kind === "messages") return <Messages messages={section.messages} />;
  if (section.kind === "text") return <LongText text={section.text} isPlain={isPlain} />;
  return <JsonTree value={section.value} open={2} />;
}

function LongText({ text, isPlain }: { text: string; isPlain: boolean }) {
  const [isExpanded, setExpanded] = useState(false);
  const isCut = text.length > MAX_TEXT && !isExpanded;
  const shown = isCut ? text.slice(0, MAX_TEXT) : text;
  return (
    <>
      {isPlain ? <p className="whitespace-pre-wrap break-words">{shown}</p> : <Markdown text={shown} />}
      {isCut && (
        <Button small look="quiet" onClick={() => setExpanded(true)}>
          … {count(text.length - MAX_TEXT)} more characters
        </Button>
      )}
    </>
  );
}

const NO_DURATIONS: ReadonlyMap<string, number> = new Map();

/** Returns the messages with their indexes. Omits tool results whose calls are in the list: the calls show the results. */
function withoutResults(messages: readonly Message[]): { message: Message; index: number }[] {
  const called = new Set(messages.flatMap(({ tool_calls }) => tool_calls?.map(({ id }) => id) ?? []));
  return messages
    .map((message, index) => ({ message, index }))
    .filter(({ message: { tool_call_id } }) => tool_call_id === undefined || !called.has(tool_call_id));
}

function Messages({ messages }: { messages: readonly Message[] }) {
  const [limit, setLimit] = useState(MAX_MESSAGES);
  const results = useMemo(() => toolResultsOf(messages), [messages]);
  const shown = useMemo(() => withoutResults(messages), [messages]);
  const hidden = Math.max(0, shown.length - limit);
  return (
    <>
      {hidden > 0 && (
        <Button small look="quiet" className="mb-2" onClick={() => setLimit(limit + 10 * MAX_MESSAGES)}>
          {count(hidden)} earlier {hidden === 1 ? "message" : "messages"}
        </Button>
      )}
      <ol aria-label="Messages" className="grid grid-cols-1 gap-4">
        {shown.slice(hidden).map(({ message, index }) => (
          // A call without a result is not marked as skipped, because the results of a model's tool calls are outputs of other runs.
          <MessageView key={index} message={message} results={results} durations={NO_DURATIONS} isDropped={undefined} />
        ))}
      </ol>
    </>
  );
}
