import { ApiError } from "../../platform/errors.ts";
import { type App, jsonText } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { uploadRoutes } from "../contract/upload.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";

export const UPLOAD_PATH = uploadRoutes.uploadExperiment.path;

/** Each piece costs two messages between threads. */
const PIECE_BYTES = 256 * 1024;

/** Streams the body to a worker thread. The next piece is read from the socket after the worker has accepted the previous one. */
export function serveUpload(
  app: App,
  prefixes: readonly string[],
  { uploads }: ExperimentsService,
  { limit_bytes, log }: { limit_bytes: number; log: Log },
): void {
  for (const prefix of prefixes) {
    app.post(`${prefix}${UPLOAD_PATH}`, async (context) => {
      const tooLarge = new ApiError("body_too_large", { limit_bytes });
      if (Number(context.req.header("content-length") ?? 0) > limit_bytes) throw tooLarge;
      const started_ms = performance.now();
      const caller = context.get("caller");
      const ticket = (await uploads.begin(caller, limit_bytes)).value();
      try {
        let total = 0;
        for await (const piece of piecesOf(context.req.raw.body)) {
          total += piece.byteLength;
          if (total > limit_bytes) throw tooLarge;
          await uploads.push(ticket, piece);
        }
        const { response, ...stored } = (await uploads.finish(ticket)).value();
        const duration_ms = Math.round(performance.now() - started_ms);
        log.info({ workspace_id: caller.tenant_id, ...stored, duration_ms }, "experiment uploaded");
        return jsonText(response);
      } catch (error) {
        await uploads.abandon(ticket);
        throw error;
      }
    });
  }
}

async function* piecesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(chunks);
    chunks = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(chunks);
}
