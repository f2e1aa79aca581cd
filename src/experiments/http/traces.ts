import type { Context, MiddlewareHandler } from "hono";
import { type Caller, mayUse } from "../../platform/contract/caller.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import type { App, Env } from "../../platform/http/route.ts";
import { withTimeout } from "../../platform/lib/signal.ts";
import { uuidOrHex } from "../contract/fields.ts";
import type { IngestRequest } from "../traces/read-changes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";

/** The limit of a body as it is sent. What it unpacks to has the limit of an upload. */
const MAX_SENT_BYTES = 64 * 2 ** 20;

/** Bodies that are received and not stored yet. Further requests are refused until there is room. */
const MAX_PENDING_BYTES = 4 * MAX_SENT_BYTES;

/** The Python client waits 10 s for a response. */
const MAX_WAIT_MS = 8_000;

const OVERLOADED = "More traces arrive than can be stored. Send the request again later.";

export interface TraceRoutesOptions {
  experiments: ExperimentsService;
  /** The limit of an unpacked body. */
  upload_limit_bytes: number;
}

/** Whether the body of a request has the limit of this file instead of the general one. */
export const isTraceBody = (path: string): boolean =>
  path.endsWith("/runs/multipart") || path.endsWith("/otel/v1/traces");

/** Serves the ingestion of runs below each of the prefixes. */
export function serveTraces(app: App, prefixes: readonly string[], options: TraceRoutesOptions): void {
  const { ingest, ingestSpans } = ingester(options);
  for (const prefix of prefixes) {
    // At the root, both paths belong to the agent server, too.
    const own = prefix === "" ? shared : (handler: MiddlewareHandler<Env>) => handler;
    app.post(
      `${prefix}/runs`,
      own((context) => ingest(context, "create"), RUN_CREATE),
    );
    app.post(
      `${prefix}/runs/batch`,
      own((context) => ingest(context, "batch"), RUN_BATCH),
    );
    app.post(`${prefix}/runs/multipart`, (context) => ingest(context, "multipart"));
    app.patch(`${prefix}/runs/:run_id`, (context) => ingest(context, "update"));
    app.post(`${prefix}/otel/v1/traces`, ingestSpans);
  }
}

/** A content type, and a file name for a download, whose text a client chose. */
const SAFE_TYPE = /^[\w.+-]+\/[\w.+-]+$/;

/** Serves attachments as downloads: a client may have sent a web page. */
export function serveAttachments(app: App, prefixes: readonly string[], { runs }: ExperimentsService): void {
  for (const prefix of prefixes)
    app.get(`${prefix}/public/attachments/:token`, async (context) => {
      const info = (await runs.findAttachment(context.req.param("token"))).value();
      const type = SAFE_TYPE.test(info.mime_type) ? info.mime_type : "application/octet-stream";
      return new Response((await runs.readAttachment(info)) as Uint8Array<ArrayBuffer>, {
        headers: {
          "content-type": type,
          "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(info.name)}`,
          "content-security-policy": "sandbox",
          "x-content-type-options": "nosniff",
        },
      });
    });
}

/** Decides by its keys whether an object is a body of traces. A body of another type belongs to the agent server. */
interface OwnBody {
  keys: string[];
  isOwn(found: string[]): boolean;
}

/** A run of the agent server names its assistant; a run of a trace does not. */
const RUN_CREATE: OwnBody = { keys: ["assistant_id"], isOwn: (found) => found.length === 0 };
const RUN_BATCH: OwnBody = { keys: ["post", "patch"], isOwn: (found) => found.length > 0 };

/** Passes a request whose body is not of this product to the agent server. The caller needs the scope of the product. */
function shared(
  handler: (context: Context<Env>) => Promise<Response>,
  { keys, isOwn }: OwnBody,
): MiddlewareHandler<Env> {
  return async (context, next) => {
    const isEncoded = context.req.header("content-encoding") !== undefined;
    const found = isEncoded ? [] : await context.get("body_parser").findKeys(context.req, keys);
    const ours = isEncoded || (found !== undefined && isOwn(found));
    const scope = ours ? "experiments" : "agents";
    if (!mayUse(context.get("caller"), scope)) throw new ApiError("missing_scope", { scope });
    return ours ? handler(context) : next();
  };
}

/** The headers that name the session of spans. */
const SESSION_HEADERS = ["langsmith-project", "langsmith-agent-id", "langsmith-agent-environment"];

function ingester({ experiments, upload_limit_bytes }: TraceRoutesOptions) {
  let pending_bytes = 0;
  /** Reads the body, and calls `work` with it while its bytes count as pending. */
  const withBody = async <T>(context: Context<Env>, work: (body: Uint8Array) => Promise<T>): Promise<T> => {
    let received = 0;
    const count = (bytes: number) => {
      received += bytes;
      pending_bytes += bytes;
      if (received > MAX_SENT_BYTES) throw new ApiError("body_too_large", { limit_bytes: MAX_SENT_BYTES });
      if (pending_bytes > MAX_PENDING_BYTES) throw new ApiError("unavailable", { reason: OVERLOADED });
    };
    try {
      const result = await withTimeout(work(await readBody(context, count)), MAX_WAIT_MS);
      if (result === undefined) throw new ApiError("unavailable", { reason: OVERLOADED });
      return result;
    } finally {
      pending_bytes -= received;
    }
  };
  const typeOf = ({ req }: Context<Env>) => ({
    content_type: req.header("content-type") ?? "",
    content_encoding: req.header("content-encoding")?.toLowerCase() ?? "",
  });
  const ingest = async (context: Context<Env>, kind: IngestRequest["kind"]): Promise<Response> => {
    const caller: Caller = context.get("caller");
    const run_id = kind === "update" ? runIdOf(context) : undefined;
    const request: IngestRequest = { kind, run_id, ...typeOf(context) };
    const stored = await withBody(context, (body) =>
      experiments.traces.ingest(caller, request, body, upload_limit_bytes),
    );
    const { invalid, refused } = stored.value();
    if (invalid.length + refused.length === 0) return context.json({}, 202);
    if (invalid.length > 0 && (kind === "create" || kind === "update")) throw new InvalidRequestError(invalid);
    return context.json({ detail: [...invalid, ...refused] }, 400);
  };
  const ingestSpans = async (context: Context<Env>): Promise<Response> => {
    const caller: Caller = context.get("caller");
    const headers = Object.fromEntries(SESSION_HEADERS.map((name) => [name, context.req.header(name)]));
    const request = { ...typeOf(context), headers };
    const stored = await withBody(context, (body) =>
      experiments.traces.ingestSpans(caller, request, body, upload_limit_bytes),
    );
    const { status, body } = stored.value();
    const type = request.content_type.includes("json") ? "application/json" : "application/x-protobuf";
    return new Response(Buffer.from(body, "base64"), { status, headers: { "content-type": type } });
  };
  return { ingest, ingestSpans };
}

function runIdOf(context: Context<Env>): string {
  const id = uuidOrHex.safeParse(context.req.param("run_id"));
  if (id.success) return id.data;
  throw new InvalidRequestError([
    {
      loc: ["path", "run_id"],
      msg: "Input should be a valid UUID",
      type: "uuid_parsing",
      input: context.req.param("run_id"),
    },
  ]);
}

/** The body in one buffer, which moves to the worker thread. */
async function readBody({ req }: Context<Env>, count: (bytes: number) => void): Promise<Uint8Array> {
  if (req.raw.bodyUsed) {
    const cached = new Uint8Array(await req.arrayBuffer());
    count(cached.byteLength);
    return cached;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of req.raw.body ?? []) {
    count(chunk.byteLength);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
