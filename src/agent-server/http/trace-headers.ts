import type { Context } from "hono";
import type { SelectHeaders } from "../../platform/lib/header-selection.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import type { RunRequest } from "../runs/merge-request.ts";

export type WithHeaders = <Body extends Pick<RunRequest, "config">>(body: Body, context: Context) => Body;

/**
 * Adds headers of a request to the configuration of its run: those that continue a trace, and those that `http.configurable_headers`
 * selects. The latter take precedence over the body: a proxy sets them, and the client writes the body.
 */
export const withHeadersOf =
  (selectHeaders: SelectHeaders | undefined): WithHeaders =>
  (body, context) => {
    const traced = withTraceHeaders(body, context);
    if (!selectHeaders) return traced;
    const configurable = { ...traced.config.configurable, ...selectHeaders(context.req.header()) };
    return { ...traced, config: { ...traced.config, configurable } };
  };

/** Parsers of the baggage items that accompany `langsmith-trace`, by name. The values are stored in `configurable` under the same names. */
const BAGGAGE = {
  "langsmith-project": (text: string) => text,
  "langsmith-tags": (text: string) => text.split(","),
  "langsmith-metadata": (text: string) => {
    const metadata: unknown = JSON.parse(text);
    return isObject(metadata) ? metadata : undefined;
  },
};

/**
 * Adds the trace of the client to the configuration of a run: the headers `langsmith-trace` and `baggage` of LangSmith's clients, and
 * `traceparent` of OpenTelemetry. Values of the body take precedence. Headers that cannot be read are ignored, because proxies add their own.
 */
function withTraceHeaders<Body extends Pick<RunRequest, "config">>(body: Body, { req }: Context): Body {
  const keys: JsonObject = {};
  const trace = req.header("langsmith-trace")?.trim();
  const traceparent = req.header("traceparent")?.trim();
  if (trace) Object.assign(keys, { "langsmith-trace": trace }, baggageOf(req.header("baggage") ?? ""));
  else if (traceparent) keys.traceparent = traceparent;
  else return body;
  return { ...body, config: { ...body.config, configurable: { ...keys, ...body.config.configurable } } };
}

function baggageOf(header: string): JsonObject {
  const items = header.split(",").flatMap((item): [string, unknown][] => {
    const [name = "", value = ""] = item.trim().split("=");
    if (!Object.hasOwn(BAGGAGE, name)) return [];
    try {
      const read = BAGGAGE[name as keyof typeof BAGGAGE](decodeURIComponent(value));
      return read === undefined ? [] : [[name, read]];
    } catch {
      return [];
    }
  });
  return Object.fromEntries(items) as JsonObject;
}
