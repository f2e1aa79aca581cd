import { Link } from "@tanstack/react-router";
import { CircleAlert } from "lucide-react";
import { Fragment, type ReactNode, useMemo } from "react";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { Markdown } from "../../../ui/markdown/markdown.tsx";
import { EmptyState } from "../../../ui/states.tsx";
import { Status } from "../../../ui/status.tsx";
import { withCounts } from "../side/steps.ts";
import type { Live } from "./live-run.ts";
import { MessageView } from "./message-view.tsx";
import { droppedCallsOf, type Message, messagesOf, toolResultsOf } from "./messages.ts";

const NO_MESSAGES: readonly Message[] = [];

/** A thread's messages, including messages that are being streamed. A state without messages is shown as keys and values. */
export function Conversation({
  values,
  live,
  durations,
  forks,
  error,
}: {
  values: unknown;
  live: Live | undefined;
  durations: ReadonlyMap<string, number>;
  /** Branch switchers by the index of the message before which they are shown. */
  forks?: ReadonlyMap<number | undefined, ReactNode>;
  /** Error of the last run. */
  error: unknown;
}) {
  const messages = messagesOf(values);
  const shown = messages ?? NO_MESSAGES;
  const results = useMemo(() => toolResultsOf(shown), [shown]);
  const dropped = useMemo(() => droppedCallsOf(shown), [shown]);
  const known = new Set(shown.map(({ id }) => id));
  const writing = (live?.writing ?? []).filter(({ message: { id } }) => !id || !known.has(id));
  const hasFailed = error !== null && error !== undefined;
  const isEmpty = shown.length === 0 && writing.length === 0 && !hasKeys(values);
  return (
    <div className="mx-auto grid w-full max-w-3xl gap-5 px-6 py-5 max-sm:px-4">
      {isEmpty && !live && !hasFailed && (
        <EmptyState title="No messages yet">Send a message to start a run.</EmptyState>
      )}
      {messages === undefined && hasKeys(values) && <Values values={values} />}
      {(shown.length > 0 || writing.length > 0) && (
        <ol aria-label="Conversation" className="grid gap-5">
          {shown.map((message, index) => (
            <Fragment key={message.id ?? index}>
              {forks?.has(index) && <li>{forks.get(index)}</li>}
              {!isToolResult(message, shown) && (
                <MessageView
                  message={message}
                  results={results}
                  durations={durations}
                  isDropped={dropped.has(message)}
                />
              )}
            </Fragment>
          ))}
          {writing.map(({ message }, index) => (
            <MessageView
              key={message.id ?? `writing ${index}`}
              message={message}
              results={results}
              durations={durations}
              isDropped={false}
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

/** Whether a message is the result of a tool call in the list. The tool call then shows the result. */
const isToolResult = ({ tool_call_id }: Message, messages: readonly Message[]): boolean =>
  tool_call_id !== undefined &&
  messages.some(({ tool_calls }) => tool_calls?.some(({ id }) => id === tool_call_id) ?? false);

/** Shows a state without messages: strings as Markdown, other values as a tree. */
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

/** Shows the running nodes and the last custom event, which can be expanded to the latest events. */
function Progress({ live }: { live: Live }) {
  const names = live.running.map(({ name, subgraphs }) => [...subgraphs, name].join(" › "));
  return (
    <div role="status" aria-label="Progress" className="grid gap-1">
      <Status kind="running" status={names.length > 0 ? `Running ${withCounts(names)}…` : "Running…"} />
      {live.customEvents.length > 0 && (
        <details className="text-table text-text-2">
          <summary className="cursor-pointer truncate font-mono">{JSON.stringify(live.customEvents.at(-1))}</summary>
          <JsonTree value={live.customEvents} open={1} />
        </details>
      )}
    </div>
  );
}

/** Matches the error of an agent that requested a token from a provider that is not configured. */
const NO_PROVIDER = /OAuth provider '.*' not found/;

function Failure({ error }: { error: unknown }) {
  const { error: name, message } = error as { error?: string; message?: string };
  return (
    <div role="alert" className="flex items-start gap-2 rounded-lg border border-line bg-error-bg px-3 py-2">
      <CircleAlert size={16} className="mt-0.5 shrink-0 text-error" aria-hidden />
      <p className="min-w-0 break-words">
        <span className="font-medium">{name ?? "The last run failed"}</span>{" "}
        {message ?? (name ? "" : JSON.stringify(error))}{" "}
        {NO_PROVIDER.test(message ?? "") && (
          <Link to="/connections" className="text-accent-text underline">
            Create the provider in Connections
          </Link>
        )}
      </p>
    </div>
  );
}
