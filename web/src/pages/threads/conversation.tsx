import { Link } from "@tanstack/react-router";
import { CircleAlert } from "lucide-react";
import { useMemo } from "react";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import type { Live } from "./live.ts";
import { MessageView } from "./message-view.tsx";
import { answersOf, type Message, messagesOf, passedBy } from "./messages.ts";
import { counted } from "./steps.ts";

const NO_MESSAGES: readonly Message[] = [];

/** What was said, and what is being said. A state that keeps no messages is shown key by key. */
export function Conversation({
  values,
  live,
  durations,
  error,
}: {
  values: unknown;
  live: Live | undefined;
  durations: ReadonlyMap<string, number>;
  /** Why the last run failed. */
  error: unknown;
}) {
  const messages = messagesOf(values);
  const said = messages ?? NO_MESSAGES;
  const answers = useMemo(() => answersOf(said), [said]);
  const passed = useMemo(() => passedBy(said), [said]);
  const writing = live?.writing ?? [];
  const hasFailed = error !== null && error !== undefined;
  const isEmpty = said.length === 0 && writing.length === 0 && !hasKeys(values);
  return (
    <div className="mx-auto grid w-full max-w-3xl gap-5 px-6 py-5 max-sm:px-4">
      {isEmpty && !live && !hasFailed && (
        <EmptyState title="Nothing has been said yet">Write to the agent below; it starts a run.</EmptyState>
      )}
      {messages === undefined && hasKeys(values) && <Values values={values} />}
      {(said.length > 0 || writing.length > 0) && (
        <ol aria-label="Conversation" className="grid gap-5">
          {said.map((message, index) =>
            isAnswer(message, said) ? null : (
              <MessageView
                key={message.id ?? index}
                message={message}
                answers={answers}
                durations={durations}
                isPassed={passed.has(message)}
              />
            ),
          )}
          {writing.map(({ message }, index) => (
            <MessageView
              key={message.id ?? `writing ${index}`}
              message={message}
              answers={answers}
              durations={durations}
              isWriting
            />
          ))}
        </ol>
      )}
      {live && <Progress live={live} />}
      {hasFailed && !live && <Failure error={error} />}
    </div>
  );
}

const hasKeys = (values: unknown): values is Record<string, unknown> =>
  typeof values === "object" && values !== null && Object.keys(values).length > 0;

/** The answer to a call that is shown: it is told there. */
const isAnswer = ({ tool_call_id }: Message, messages: readonly Message[]): boolean =>
  tool_call_id !== undefined &&
  messages.some(({ tool_calls }) => tool_calls?.some(({ id }) => id === tool_call_id) ?? false);

/** A state without messages: texts as they are, everything else as a tree. */
const Values = ({ values }: { values: Record<string, unknown> }) => (
  <dl className="grid gap-4">
    {Object.entries(values).map(([key, value]) => (
      <div key={key} className="min-w-0">
        <dt className="mb-0.5 font-mono text-table text-text-3">{key}</dt>
        <dd className="min-w-0">
          {typeof value === "string" ? <Markdown text={value} /> : <JsonTree value={value} open={1} />}
        </dd>
      </div>
    ))}
  </dl>
);

/** What works right now, and what it told last. */
function Progress({ live }: { live: Live }) {
  const names = live.running.map(({ name, inside }) => [...inside, name].join(" › "));
  return (
    <div role="status" aria-label="Progress" className="grid gap-1">
      <Status kind="running" status={names.length > 0 ? `${counted(names)} …` : "working …"} />
      {live.notes.length > 0 && (
        <details className="text-table text-text-2">
          <summary className="cursor-pointer truncate font-mono">{JSON.stringify(live.notes.at(-1))}</summary>
          <JsonTree value={live.notes} open={1} />
        </details>
      )}
    </div>
  );
}

/** An agent asked for a token of a service that nobody has set up here. */
const NO_PROVIDER = /OAuth provider '.*' not found/;

function Failure({ error }: { error: unknown }) {
  const { error: name, message } = error as { error?: string; message?: string };
  return (
    <div role="alert" className="flex items-start gap-2 rounded-lg border border-line bg-error-bg px-3 py-2">
      <CircleAlert size={16} className="mt-0.5 shrink-0 text-error" aria-hidden />
      <p className="min-w-0 break-words">
        <span className="font-medium">{name ?? "The last run failed."}</span>{" "}
        {message ?? (name ? "" : JSON.stringify(error))}{" "}
        {NO_PROVIDER.test(message ?? "") && (
          <Link to="/connections" className="text-accent-text underline">
            Make it in Connections
          </Link>
        )}
      </p>
    </div>
  );
}
