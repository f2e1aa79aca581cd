export const PROTOBUF = "application/x-protobuf";

export const mediaTypeOf = (content_type: string): string | undefined =>
  content_type.split(";")[0]?.trim().toLowerCase();

export const isProtobuf = (content_type: string): boolean => mediaTypeOf(content_type) === PROTOBUF;

/** The codes of google.rpc.Status by the HTTP status of the response. */
const RPC_CODES: Record<number, number> = { 400: 3, 401: 16, 403: 7, 413: 8, 415: 3, 429: 8, 503: 14 };
const RPC_INTERNAL = 13;

/** The tags of the fields `code` (varint) and `message` (length-delimited) in protobuf. */
const CODE_TAG = 0x08;
const MESSAGE_TAG = 0x12;

/** The body of an error: a google.rpc.Status in protobuf, `{"detail"}` in JSON. The serving thread loads no protobuf library for it. */
export function otlpErrorBody(content_type: string, status: number, detail: string): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  if (!isProtobuf(content_type)) return encoder.encode(JSON.stringify({ detail }));
  const message = encoder.encode(detail);
  const code = RPC_CODES[status] ?? RPC_INTERNAL;
  return Uint8Array.from([CODE_TAG, code, MESSAGE_TAG, ...varint(message.length), ...message]);
}

/** Seven bits per byte, lowest first. All bytes but the last have the high bit. */
function* varint(value: number): Generator<number> {
  for (; value > 0x7f; value >>>= 7) yield (value & 0x7f) | 0x80;
  yield value;
}
