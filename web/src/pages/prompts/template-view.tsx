import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { count } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { DetailSection } from "../../ui/layout.tsx";
import { piecesOf, type TemplateMessage, type TemplatePart, templateOf } from "./template.ts";

/** Number of messages, and of characters in each text, that are shown initially. */
const MAX_MESSAGES = 100;
const MAX_TEXT = 20_000;

/** Shows a prompt's messages with their exact text, its output schema and its model. Shows a manifest that is not a prompt as JSON. */
export function TemplateView({ manifest }: { manifest: unknown }) {
  const template = templateOf(manifest);
  if (!template)
    return (
      <DetailSection title="Manifest">
        <JsonTree value={manifest} open={3} />
      </DetailSection>
    );
  const { messages, schema, model } = template;
  return (
    <>
      <DetailSection title="Messages">
        <Messages messages={messages} />
      </DetailSection>
      {schema !== undefined && (
        <DetailSection title="Output schema">
          <JsonTree value={schema} open={2} />
        </DetailSection>
      )}
      {model !== undefined && (
        <DetailSection title="Model">
          <JsonTree value={model} open={3} />
        </DetailSection>
      )}
    </>
  );
}

function Messages({ messages }: { messages: readonly TemplateMessage[] }) {
  const [limit, setLimit] = useState(MAX_MESSAGES);
  return (
    <>
      <ol aria-label="Messages" className="divide-y divide-line rounded-lg border border-line bg-raised">
        {messages.slice(0, limit).map(({ role, parts }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the messages of a commit do not change
          <li key={index} className="grid grid-cols-1 gap-1 px-3 py-2.5">
            <span className="font-medium text-note text-text-3">{role}</span>
            {parts.map((part, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a message do not change
              <Part key={at} part={part} />
            ))}
          </li>
        ))}
      </ol>
      {messages.length > limit && (
        <Button small look="quiet" onClick={() => setLimit(limit + 10 * MAX_MESSAGES)}>
          {count(messages.length - limit)} more {messages.length - limit === 1 ? "message" : "messages"}
        </Button>
      )}
    </>
  );
}

function Part({ part }: { part: TemplatePart }) {
  const [isExpanded, setExpanded] = useState(false);
  if ("json" in part) return <JsonTree value={part.json} open={2} />;
  const { text, format } = part;
  const isCut = text.length > MAX_TEXT && !isExpanded;
  return (
    <p className="whitespace-pre-wrap break-words text-body">
      {piecesOf(isCut ? text.slice(0, MAX_TEXT) : text, format).map((piece, index) =>
        index % 2 === 0 ? (
          piece
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of a text do not change
          <code key={index} className="rounded bg-selected px-0.5 text-accent-text">
            {piece}
          </code>
        ),
      )}
      {isCut && (
        <Button small look="quiet" onClick={() => setExpanded(true)}>
          … {count(text.length - MAX_TEXT)} more characters
        </Button>
      )}
    </p>
  );
}
