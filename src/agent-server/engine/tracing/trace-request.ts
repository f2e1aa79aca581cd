import { isUuid } from "../../../platform/lib/ids.ts";
import { isObject } from "../../../platform/lib/json/json.ts";
import type { RunKwargs, TraceOrder, TraceParent } from "../../graph-hosts/host.ts";
import type { RunRow } from "../../storage/schema.ts";

/** Maximum lengths, the same as for these fields in `POST /runs`. */
const MAX_PROJECT_CHARS = 1_000;
const MAX_ORDER_CHARS = 10_000;

const DOTTED_ORDER =
  /^\d{8}T\d{12}Z[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.\d{8}T\d{12}Z[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})*$/;

/** The `traceparent` header of W3C Trace Context: version, trace ID, parent span ID (captured) and flags. */
const TRACE_PARENT = /^[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}/;

const configurableOf = ({ config }: RunKwargs): Record<string, unknown> => config.configurable ?? {};

/** Whether the request asks for a trace, by `langsmith_tracer` or `langsmith-trace`. `traceparent` does not count: proxies add it. */
export const isRequested = (kwargs: RunKwargs): boolean =>
  isObject(kwargs.langsmith_tracer) || parentOf(kwargs)?.kind === "run";

/** Returns the name of the tracing project (`session_name` in the API): from the request, else from the settings, else the graph ID. */
export function projectOf({ graph_id }: RunRow, kwargs: RunKwargs, default_project: string | undefined): string {
  const { langsmith_project, "langsmith-project": baggage } = configurableOf(kwargs);
  const [named] = [langsmith_project, baggage].filter((name) => typeof name === "string" && name !== "") as string[];
  return (named ?? default_project ?? graph_id).slice(0, MAX_PROJECT_CHARS);
}

export function traceOrderOf(run: RunRow, kwargs: RunKwargs, default_project: string | undefined): TraceOrder {
  const { langsmith_example_id, "langsmith-metadata": metadata, "langsmith-tags": tags } = configurableOf(kwargs);
  const hasExample = typeof langsmith_example_id === "string" && isUuid(langsmith_example_id);
  return {
    project_name: projectOf(run, kwargs, default_project),
    example_id: hasExample ? langsmith_example_id : undefined,
    started_at: run.started_at ?? Date.now(),
    parent: parentOf(kwargs),
    metadata: isObject(metadata) ? metadata : {},
    tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [],
  };
}

function parentOf(kwargs: RunKwargs): TraceParent | undefined {
  const { "langsmith-trace": dotted_order, traceparent } = configurableOf(kwargs);
  if (typeof dotted_order === "string" && dotted_order.length <= MAX_ORDER_CHARS && DOTTED_ORDER.test(dotted_order))
    return { kind: "run", dotted_order };
  const [, span_id] = TRACE_PARENT.exec(String(traceparent)) ?? [];
  // OTLP ingestion derives the same run ID from the span ID.
  return span_id === undefined
    ? undefined
    : { kind: "span", run_id: `00000000-0000-0000-${span_id.slice(0, 4)}-${span_id.slice(4)}` };
}
