import type { Context, MiddlewareHandler } from "hono";
import { type Caller, mayUse } from "../../platform/contract/caller.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import type { App, Env } from "../../platform/http/route.ts";
import { uuidOrHex } from "../contract/fields.ts";
import { isProtobuf, otlpErrorBody, PROTOBUF } from "../contract/traces/otlp-status.ts";
import { priceRoutes } from "../contract/traces/prices.ts";
import type { AttachmentInfo } from "../storage/traces/traces.ts";
import type { IngestRequest } from "../traces/read-changes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { PendingBodies } from "./pending-bodies.ts";
import type { Routes } from "./route.ts";

export interface TraceRoutesOptions {
  experiments: ExperimentsService;
  /** The limit of a decompressed body. */
  upload_limit_bytes: number;
}

const isSpanExport = (path: string): boolean => path.endsWith("/otel/v1/traces");

/** An error as a google.rpc.Status, for OTLP exporters that send protobuf. Undefined for other requests. */
export function otlpErrorResponse(
  { req }: Context,
  status: number,
  detail: string,
  headers: Record<string, string>,
): Response | undefined {
  const content_type = req.header("content-type") ?? "";
  if (!isSpanExport(req.path) || !isProtobuf(content_type)) return undefined;
  const body = otlpErrorBody(content_type, status, detail);
  return new Response(body, { status, headers: { ...headers, "content-type": PROTOBUF } });
}

/** Serves the ingestion of runs below each of the prefixes. */
export function serveTraces(app: App, prefixes: readonly string[], options: TraceRoutesOptions): void {
  const { ingest, ingestSpans } = ingester(options);
  for (const prefix of prefixes) {
    // At the root, the agent server also has these two paths.
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

export function servePrices(v1: Routes, { prices }: ExperimentsService): void {
  const { listPrices, createPrice, updatePrice, deletePrice } = priceRoutes;
  v1.json(listPrices, ({ caller }) => prices.list(caller));
  v1.json(createPrice, ({ caller, body }) => prices.create(caller, body));
  v1.json(updatePrice, ({ caller, params, body }) => prices.update(caller, params.price_id, body));
  v1.deletion(deletePrice, "Price", ({ caller, params }) => prices.delete(caller, params.price_id));
}

/** Clients choose the content types of attachments. Types that do not match are replaced by application/octet-stream. */
const SAFE_TYPE = /^[\w.+-]+\/[\w.+-]+$/;

/** Serves attachments as downloads, because an attachment may be a web page. */
export function serveAttachments(app: App, prefixes: readonly string[], experiments: ExperimentsService): void {
  const { examples, runs, sharedRuns } = experiments;
  const respond = ({ name, mime_type }: Pick<AttachmentInfo, "name" | "mime_type">, data: unknown): Response =>
    new Response(data as Uint8Array<ArrayBuffer>, {
      headers: {
        "content-type": SAFE_TYPE.test(mime_type) ? mime_type : "application/octet-stream",
        "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
        "content-security-policy": "sandbox",
        "x-content-type-options": "nosniff",
      },
    });
  const respondWithRun = async (info: AttachmentInfo) => respond(info, await runs.readAttachment(info));
  for (const prefix of prefixes) {
    app.get(`${prefix}/public/attachments/:link`, async ({ req }) => {
      const link = req.param("link");
      const ofExample = (await examples.findAttachment(link)).value();
      if (ofExample) return respond(ofExample, await examples.readAttachment(ofExample.token));
      return respondWithRun((await runs.findAttachment(link)).value());
    });
    app.get(`${prefix}/public/:share_token/run/:run_id/attachments/:name`, async ({ req }) => {
      const { share_token, run_id, name } = req.param();
      return respondWithRun((await sharedRuns.findAttachment(share_token, run_id, name)).value());
    });
  }
}

/** Determines from the keys of a body whether it contains traces. A body that is not an object is for the agent server. */
interface OwnBody {
  keys: string[];
  isOwn(found: string[]): boolean;
}

/** A request to create an agent run has an `assistant_id`; a traced run does not. */
const RUN_CREATE: OwnBody = { keys: ["assistant_id"], isOwn: (found) => found.length === 0 };
/** A batch of agent runs is a list. The agent server refuses a single agent run, which would otherwise be ignored as an empty batch. */
const RUN_BATCH: OwnBody = {
  keys: ["post", "patch", "assistant_id"],
  isOwn: (found) => found.length === 0 || found.some((key) => key !== "assistant_id"),
};

/**
 * Passes a request to the agent server unless its body contains traces or is compressed. The caller needs the responding product's scope.
 */
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

/** Headers that determine the session of spans. */
const SESSION_HEADERS = ["langsmith-project", "langsmith-agent-id", "langsmith-agent-environment"];

function ingester({ experiments, upload_limit_bytes }: TraceRoutesOptions) {
  const pending = new PendingBodies();
  const withBody = <T>(
    context: Context<Env>,
    work: (body: Uint8Array, deadline_ms: number) => Promise<T>,
  ): Promise<T> => {
    const { raw } = context.req;
    const length = context.req.header("content-length");
    const chunks = raw.bodyUsed ? cachedBody(context) : (raw.body ?? []);
    const received = { chunks, length: length === undefined ? undefined : Number(length) };
    return pending.use(context.get("caller").tenant_id, received, work);
  };
  const typeOf = ({ req }: Context<Env>) => ({
    content_type: req.header("content-type") ?? "",
    content_encoding: req.header("content-encoding")?.toLowerCase() ?? "",
  });
  const ingest = async (context: Context<Env>, kind: IngestRequest["kind"]): Promise<Response> => {
    const caller: Caller = context.get("caller");
    const run_id = kind === "update" ? runIdOf(context) : undefined;
    const request: IngestRequest = { kind, run_id, ...typeOf(context) };
    const stored = await withBody(context, (body, deadline_ms) =>
      experiments.traces.ingest(caller, request, body, { max_bytes: upload_limit_bytes, deadline_ms }),
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
    const stored = await withBody(context, (body, deadline_ms) =>
      experiments.traces.ingestSpans(caller, request, body, { max_bytes: upload_limit_bytes, deadline_ms }),
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

/** Yields a body that {@link shared} has already read. */
async function* cachedBody({ req }: Context<Env>): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(await req.arrayBuffer());
}
