import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

export const PROTOBUF = "application/x-protobuf";

export const mediaTypeOf = (content_type: string): string | undefined =>
  content_type.split(";")[0]?.trim().toLowerCase();

export const isProtobuf = (content_type: string): boolean => mediaTypeOf(content_type) === PROTOBUF;

/** The codes of google.rpc.Status by the HTTP status of the response. */
const RPC_CODES: Record<number, number> = { 400: 3, 401: 16, 403: 7, 413: 8, 415: 3, 429: 8, 503: 14 };
const RPC_INTERNAL = 13;

/** The body of an error: a google.rpc.Status in protobuf, `{"detail"}` in JSON. */
export function otlpErrorBody(content_type: string, status: number, detail: string): Uint8Array<ArrayBuffer> {
  if (!isProtobuf(content_type)) return new TextEncoder().encode(JSON.stringify({ detail }));
  return new BinaryWriter()
    .tag(1, WireType.Varint)
    .int32(RPC_CODES[status] ?? RPC_INTERNAL)
    .tag(2, WireType.LengthDelimited)
    .string(detail)
    .finish();
}
