import { ChevronRight, Wrench } from "lucide-react";
import { duration } from "../../../ui/format.ts";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { DetailSection } from "../../../ui/layout.tsx";
import { Status, type StatusKind } from "../../../ui/status.tsx";
import { jsonOf } from "../thread-filter.ts";
import { type Message, partsOf, type ToolCall } from "./messages.ts";

/** A tool call on one line, expandable to its arguments and result. */
export function ToolCallView({
  call,
  result,
  duration_ms,
  isDropped,
}: {
  call: ToolCall;
  result: Message | undefined;
  duration_ms: number | undefined;
  /** Whether the call can no longer get a result. Undefined for a traced run, because another run may contain the result. */
  isDropped: boolean | undefined;
}) {
  const { args } = call;
  return (
    <details className="group/call min-w-0 rounded-lg border border-line bg-sunken">
      <summary className="flex min-w-0 cursor-pointer list-none items-center gap-2 rounded-lg px-2.5 py-1.5 text-table hover:bg-hover">
        <ChevronRight size={14} className="shrink-0 text-text-3 group-open/call:rotate-90" aria-hidden />
        <Wrench size={13} className="shrink-0 text-text-3" aria-hidden />
        <span className="shrink-0 font-medium font-mono">{call.name}</span>
        <span className="min-w-0 flex-1 truncate font-mono text-text-3">{summaryOf(args)}</span>
        {duration_ms !== undefined && (
          <span className="shrink-0 text-text-2" title="Duration of the step that returned the result">
            {duration(duration_ms)}
          </span>
        )}
        {result ? (
          <Outcome result={result} />
        ) : (
          isDropped !== undefined && (
            <Status status={isDropped ? "skipped" : "pending"} kind={isDropped ? "off" : "pending"} />
          )
        )}
      </summary>
      <div className="grid gap-3 border-line border-t px-3 py-2">
        <DetailSection title="Arguments">
          {typeof args === "string" ? (
            <pre className="whitespace-pre-wrap break-words">{args}</pre>
          ) : (
            <JsonTree value={args} open={2} />
          )}
        </DetailSection>
        {result && (
          <DetailSection title="Result">
            <Result result={result} />
          </DetailSection>
        )}
      </div>
    </details>
  );
}

/** Words for a failure in the `status` of a JSON result. Such results usually have the message status `success`. */
const FAILURES = /^(error|failed|failure|rejected|denied|refused|cancelled|canceled|timeout)$/i;

/** Shows whether a call succeeded. Without a status, only that there is a result is known. */
function Outcome({ result }: { result: Message }) {
  const { status, kind } = outcomeOf(result);
  return kind ? <Status status={status} kind={kind} /> : <span className="shrink-0 text-text-2">{status}</span>;
}

function outcomeOf(result: Message): { status: string; kind?: StatusKind } {
  const value = jsonOf(partsOf(result).text) as { status?: unknown } | null;
  const said = typeof value === "object" && typeof value?.status === "string" ? value.status : "";
  if (FAILURES.test(said)) return { status: said, kind: "error" };
  if (result.status === "error") return { status: "failed", kind: "error" };
  return result.status === "success" ? { status: "success", kind: "success" } : { status: "Returned" };
}

/** Shows a tool result. Text that is a JSON object or array is shown as a tree. */
function Result({ result }: { result: Message }) {
  const { text, others } = partsOf(result);
  const value = text === "" && others.length > 0 ? others : jsonOf(text);
  if (typeof value === "object" && value !== null) return <JsonTree value={value} open={2} />;
  return <p className="whitespace-pre-wrap break-words text-table">{text}</p>;
}

const summaryOf = (args: unknown): string => {
  if (typeof args !== "object" || args === null) return String(args ?? "");
  return Object.entries(args)
    .map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
};
