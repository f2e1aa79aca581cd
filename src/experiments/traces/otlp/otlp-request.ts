import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { JsonError, parseUntrusted } from "../../../platform/lib/json/json.ts";
import { isProtobuf, mediaTypeOf, PROTOBUF } from "../../contract/traces/otlp-status.ts";
import { type Attributes, attributes, enumOf, id, message, OtlpError, repeated, text, time } from "./wire-fields.ts";

export interface OtlpEvent {
  time: number;
  name: string;
  attributes: Attributes;
}

interface OtlpLink {
  trace_id: string;
  span_id: string;
  attributes: Attributes;
}

interface Span {
  trace_id: string;
  span_id: string;
  parent_span_id: string;
  name: string;
  start_time: number;
  end_time: number;
  attributes: Attributes;
  events: OtlpEvent[];
  links: OtlpLink[];
  status: { message: string; code: number };
}

/** A span of a request. IDs are in lower case and not validated yet; times are in microseconds since the epoch, 0 if missing. */
export interface OtlpSpan extends Span {
  resource: Attributes;
  scope: { name: string; version: string };
}

const STATUS_CODES = ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];
export const STATUS_ERROR = 2;

const event = message<OtlpEvent>({
  time: [1, time, "timeUnixNano"],
  name: [2, text],
  attributes: [3, attributes],
});

/**
 * The protobuf messages of opentelemetry-proto 1.x (trace, common, resource, collector/trace), with the fields runs use. One table reads
 * protobuf and JSON, with the same limits. Generated code could read only protobuf: in its JSON, ids are base64, and in OTLP/JSON they are
 * hex.
 */
const request = message({
  resource_spans: [
    1,
    repeated(
      message({
        resource: [1, message({ attributes: [1, attributes] })],
        scope_spans: [
          2,
          repeated(
            message({
              scope: [1, message({ name: [1, text], version: [2, text] })],
              spans: [
                2,
                repeated(
                  message<Span>({
                    trace_id: [1, id],
                    span_id: [2, id],
                    parent_span_id: [4, id],
                    name: [5, text],
                    start_time: [7, time, "startTimeUnixNano"],
                    end_time: [8, time, "endTimeUnixNano"],
                    attributes: [9, attributes],
                    events: [11, repeated(event)],
                    links: [
                      13,
                      repeated(message<OtlpLink>({ trace_id: [1, id], span_id: [2, id], attributes: [4, attributes] })),
                    ],
                    status: [15, message({ message: [2, text], code: [3, enumOf(STATUS_CODES)] })],
                  }),
                ),
              ],
            }),
          ),
        ],
      }),
    ),
  ],
});

const JSON_TYPE = "application/json";

/** A JSON body repeats the field names: 1,000 spans with 40 attributes have 135,000 keys. Each nested AnyValue adds up to 4 levels. */
const JSON_LIMITS = { depth: 500, keys: 4_000_000, values: 4_000_000 };

/**
 * The spans of an ExportTraceServiceRequest, in protobuf or JSON.
 *
 * @throws OtlpError when the content type is not supported, or the bytes are not such a request
 */
export function readOtlpRequest(bytes: Uint8Array, content_type: string): OtlpSpan[] {
  const { resource_spans } = isProtobuf(content_type) ? readProtobuf(bytes) : readJson(bytes, content_type);
  return resource_spans.flatMap(({ resource, scope_spans }) =>
    scope_spans.flatMap(({ scope, spans }) => spans.map((span) => ({ ...span, resource: resource.attributes, scope }))),
  );
}

function readProtobuf(bytes: Uint8Array) {
  try {
    return request.readProtobuf(bytes);
  } catch (error) {
    if (error instanceof OtlpError) throw error;
    // BinaryReader throws plain errors for truncated bytes, invalid tags and invalid varints.
    throw new OtlpError(`The body is not a valid protobuf ExportTraceServiceRequest: ${(error as Error).message}.`);
  }
}

function readJson(bytes: Uint8Array, content_type: string) {
  if (mediaTypeOf(content_type) !== JSON_TYPE)
    throw new OtlpError(
      `The content type must be ${PROTOBUF} or ${JSON_TYPE}, not "${content_type.slice(0, 100)}".`,
      415,
    );
  try {
    return request.readJson(parseUntrusted(new TextDecoder().decode(bytes), JSON_LIMITS));
  } catch (error) {
    throw error instanceof JsonError ? new OtlpError(`The body ${error.message}.`) : error;
  }
}

/** The number of spans that were not stored, and the reasons. */
export interface RejectedSpans {
  count: number;
  message: string;
}

/** The body of an ExportTraceServiceResponse. In JSON, 64-bit integers are strings. */
export function otlpResponse(content_type: string, { count, message }: RejectedSpans): Uint8Array<ArrayBuffer> {
  if (!isProtobuf(content_type)) {
    const partial = count === 0 && message === "" ? {} : { rejectedSpans: String(count), errorMessage: message };
    return new TextEncoder().encode(JSON.stringify({ partialSuccess: partial }));
  }
  const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).fork();
  if (count > 0) writer.tag(1, WireType.Varint).int64(count);
  if (message !== "") writer.tag(2, WireType.LengthDelimited).string(message);
  return writer.join().finish();
}
