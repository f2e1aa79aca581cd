import { type Sink, writtenBody } from "../../platform/http/written-body.ts";

/** A response whose body is JSON text that comes in pieces. `gone` is aborted when its client is. */
export function jsonPieces(pieces: AsyncIterable<string>, gone: AbortSignal): Response {
  const body = writtenBody((sink) => writePieces(pieces, sink, gone));
  return new Response(body, { headers: { "content-type": "application/json" } });
}

/** What fails now breaks the connection: the status is sent already. */
async function writePieces(pieces: AsyncIterable<string>, sink: Sink, gone: AbortSignal): Promise<void> {
  try {
    for await (const piece of pieces) if (!sink.write(piece)) await sink.drained(gone);
    sink.end();
  } catch (error) {
    sink.fail(error);
  }
}
