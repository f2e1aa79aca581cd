import { runIdOfSpan } from "../../../platform/lib/ids.ts";
import type { RunFields } from "../../contract/traces/traces.ts";
import type { OtlpSpan } from "./otlp-request.ts";
import type { RunAttributes } from "./run-attributes.ts";

interface PlacedSpan {
  span: OtlpSpan;
  run_id: string;
  run: RunAttributes;
}

/** The position of a span in its trace, and the session that the span or a span above it names. */
export interface SpanPlace {
  fields: Pick<RunFields, "trace_id" | "parent_run_id" | "dotted_order">;
  session: Pick<RunFields, "session_name" | "session_id"> | undefined;
}

/** The limit of RunFields: about 340 levels. Deeper spans have only the id of their parent. */
const MAX_DOTTED_ORDER_CHARS = 20_000;

const ZEROS = /^0*$/;

/**
 * Determines the positions of spans from the other spans of the request. If the request does not contain the root of a trace, or if parents
 * form a cycle, a span has only the id of its parent.
 */
export function placeSpans(items: readonly PlacedSpan[]): SpanPlace[] {
  const by_span = new Map(items.map((item) => [`${item.span.trace_id}:${item.span.span_id}`, item]));
  const by_run = new Map(items.map((item) => [item.run_id, item]));
  const parentOf = ({ span, run, run_id }: PlacedSpan): PlacedSpan | undefined => {
    const parent =
      run.parent_run_id === undefined
        ? by_span.get(`${span.trace_id}:${span.parent_span_id}`)
        : by_run.get(run.parent_run_id);
    return parent?.run_id === run_id ? undefined : parent;
  };
  const places = new Map<PlacedSpan, SpanPlace>();
  const visited = new Set<PlacedSpan>();
  for (const item of items) {
    const unplaced: PlacedSpan[] = [];
    // Iterative, because a chain of parents may be as long as the request.
    for (let next: PlacedSpan | undefined = item; next && !visited.has(next); next = parentOf(next)) {
      visited.add(next);
      unplaced.push(next);
    }
    for (const next of unplaced.reverse()) {
      const parent = parentOf(next);
      places.set(next, placeBelow(next, parent, parent && places.get(parent)));
    }
  }
  return items.map((item) => places.get(item) as SpanPlace);
}

function placeBelow({ span, run, run_id }: PlacedSpan, parent?: PlacedSpan, above?: SpanPlace): SpanPlace {
  const { session_name = metadataText(run, "ls_project_name"), session_id, trace_id } = run;
  const session =
    session_name === undefined && session_id === undefined ? above?.session : { session_name, session_id };
  if (run.dotted_order !== undefined)
    return { session, fields: { trace_id, parent_run_id: run.parent_run_id, dotted_order: run.dotted_order } };
  const segment = `${orderTime(span.start_time)}${run_id}`;
  const parent_run_id = parent?.run_id ?? namedParent(span, run, run_id);
  if (parent_run_id === undefined) return { session, fields: { trace_id: run_id, dotted_order: segment } };
  const order = above?.fields.dotted_order;
  if (order === undefined || order.length + 1 + segment.length > MAX_DOTTED_ORDER_CHARS)
    return { session, fields: { trace_id, parent_run_id } };
  return { session, fields: { trace_id: rootOf(order), parent_run_id, dotted_order: `${order}.${segment}` } };
}

/**
 * The id of a parent that is not in the request. A span that has a LangSmith trace id and no parent is placed below the root of that trace.
 */
function namedParent({ parent_span_id }: OtlpSpan, run: RunAttributes, run_id: string): string | undefined {
  const named = run.parent_run_id ?? (ZEROS.test(parent_span_id) ? run.trace_id : runIdOfSpan(parent_span_id));
  return named === run_id ? undefined : named;
}

function metadataText({ metadata }: RunAttributes, key: string): string | undefined {
  const value = metadata[key];
  return typeof value === "string" && value !== "" && value.length <= 1000 ? value : undefined;
}

const UUID_CHARS = 36;

/** The run id at the end of the first segment. */
const rootOf = (dotted_order: string): string => {
  const [first = ""] = dotted_order.split(".", 1);
  return first.slice(-UUID_CHARS).toLowerCase();
};

/** `20260131T120000123456Z` */
function orderTime(us: number): string {
  const ms = Math.floor(us / 1000);
  const iso = new Date(ms).toISOString().replaceAll(/[-:.Z]/g, "");
  return `${iso}${String(us - ms * 1000).padStart(3, "0")}Z`;
}
