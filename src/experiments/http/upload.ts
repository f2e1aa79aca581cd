import { ApiError } from "../../platform/errors.ts";
import { type App, jsonText } from "../../platform/http/route.ts";
import { experimentRoutes } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";

export const UPLOAD_PATH = experimentRoutes.uploads.uploadExperiment.path;

/** A piece of the body is handed on when it has this many bytes: each costs two messages between threads. */
const PIECE_BYTES = 256 * 1024;

/**
 * The upload is the one route that does not read its body whole: pieces of it are checked in another thread as they arrive,
 * and the next piece is taken from the socket when the last one has been.
 */
export function serveUpload(
  app: App,
  prefixes: readonly string[],
  { uploads }: ExperimentsService,
  limit_bytes: number,
): void {
  for (const prefix of prefixes) {
    app.post(`${prefix}${UPLOAD_PATH}`, async (context) => {
      const tooLarge = new ApiError("body_too_large", { limit_bytes });
      if (Number(context.req.header("content-length") ?? 0) > limit_bytes) throw tooLarge;
      const ticket = (await uploads.begin(context.get("caller"), limit_bytes)).value();
      try {
        let total = 0;
        for await (const piece of piecesOf(context.req.raw.body)) {
          total += piece.byteLength;
          if (total > limit_bytes) throw tooLarge;
          await uploads.push(ticket, piece);
        }
        return jsonText((await uploads.finish(ticket)).json);
      } catch (error) {
        await uploads.abandon(ticket);
        throw error;
      }
    });
  }
}

/** The body in pieces of a useful size. */
async function* piecesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  let gathered: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    gathered.push(chunk);
    bytes += chunk.byteLength;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(gathered);
    gathered = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(gathered);
}
