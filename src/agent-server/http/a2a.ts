import type { Context } from "hono";
import { ApiError } from "../../platform/errors.ts";
import { type BaseUrlOptions, baseUrlOf } from "../../platform/http/base-url.ts";
import { clientAbortOf } from "../../platform/http/client-abort.ts";
import { keepAliveResponse } from "../../platform/http/json-responses.ts";
import { type App, type Env, serve } from "../../platform/http/route.ts";
import { a2aRoutes } from "../contract/a2a.ts";
import type { Assistant } from "../contract/records.ts";
import type { StreamedEvent } from "../engine/index.ts";
import type { GraphCatalog } from "../graph-catalog.ts";
import type { CardOptions } from "../protocols/a2a/agent-card.ts";
import type { A2aRequest, A2aTasks } from "../protocols/a2a/tasks.ts";
import { messageIn } from "./json-rpc.ts";
import type { RunRoutesOptions } from "./runs.ts";
import { DataFormatter, sseResponse } from "./sse.ts";
import { withHeadersOf } from "./trace-headers.ts";

export interface A2aRoutesOptions extends RunRoutesOptions, BaseUrlOptions {
  a2a: {
    tasks: A2aTasks;
    catalog: Pick<GraphCatalog, "graphs">;
    /** Whether the service requires a key or a JWT. */
    requiresKey(): Promise<boolean>;
  };
  /** Set in instances of deployments, to which the router sends the address of the deployment in headers. */
  rollout: number | undefined;
}

/** Methods whose responses may stay open as long as a run takes. The first group responds with a stream. */
const STREAMING = ["SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"];
const WAITING = [...STREAMING, "SendMessage", "CancelTask", "message/send", "tasks/cancel"];

export function serveA2a(app: App, options: A2aRoutesOptions): void {
  const { a2a, runs, heartbeat_ms, log } = options;
  const withHeaders = withHeadersOf(options.configurable_headers);
  const formatter = new A2aFormatter();
  const onError = (error: unknown): void => log.warn({ error }, "response failed");

  const cardOptions = async (assistant: Assistant, context: Context<Env>): Promise<CardOptions> => ({
    assistant,
    base_url: serverUrl(context, options),
    sends_push: a2a.tasks.sendsPush,
    requires_key: await a2a.requiresKey(),
  });

  const sendCard = async (caller: A2aRequest["caller"], assistant_id: string, context: Context<Env>) => {
    const assistant = await a2a.tasks.findAssistant({ caller, authorize: undefined }, assistant_id);
    await a2a.tasks.requireMessages(assistant);
    const { cardFor } = await import("../protocols/a2a/server.ts");
    const card = await cardFor(await cardOptions(assistant, context), context.req.header("a2a-version"));
    return context.json(card, 200, { vary: "A2A-Version", "cache-control": "private, no-cache" });
  };

  serve(app, a2aRoutes.findAgentCard, async ({ caller, query, context }) => {
    const [graph, ...others] = a2a.catalog.graphs;
    const only = others.length === 0 ? graph?.graph_id : undefined;
    const assistant_id = query.assistant_id ?? only;
    if (assistant_id !== undefined) return sendCard(caller, assistant_id, context);
    throw new ApiError("invalid_request", {
      reason:
        "query.assistant_id: is required unless the project has exactly one graph. Send the ID of an assistant or the name of a graph",
    });
  });

  serve(app, a2aRoutes.getAgentCard, ({ caller, params, context }) => sendCard(caller, params.assistant_id, context));

  app.openAPIRegistry.registerPath(a2aRoutes.callAgent);
  app.post("/a2a/:assistant_id", async (context) => {
    const body = await messageIn(context);
    if (body instanceof Response) return body;
    const method = String(body.method);
    if (WAITING.includes(method)) context.get("requireOpenResponse")();
    const request = {
      caller: context.get("caller"),
      authorize: context.get("authorize"),
      withHeaders: <Body extends Parameters<typeof withHeaders>[0]>(body: Body) => withHeaders(body, context) as Body,
    };
    const assistant = await a2a.tasks.findAssistant(request, context.req.param("assistant_id"));
    // Imported with the first request: most services have no A2A clients.
    const { answerTo, isStream } = await import("../protocols/a2a/server.ts");
    const client = clientAbortOf(context);
    const served = { ...request, assistant, card: await cardOptions(assistant, context), signal: client.signal };
    const answer = answerTo({ tasks: a2a.tasks, runs, log }, served, body, context.req.header("a2a-version"));
    if (!STREAMING.includes(method)) return keepAliveResponse(answer.then(JSON.stringify), {}, client, onError);
    const started = await answer;
    if (!isStream(started)) return context.json(started);
    return sseResponse(batchesOf(started), { heartbeat_ms, formatter, client, onError });
  });
}

async function* batchesOf(messages: AsyncGenerator<object>): AsyncGenerator<readonly StreamedEvent[]> {
  for await (const message of messages) yield [{ event: "message", data: JSON.stringify(message) }];
}

class A2aFormatter extends DataFormatter {
  override errorEvent({ message }: { error: string; message: string }): StreamedEvent {
    return { event: "message", data: JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } }) };
  }
}

function serverUrl(context: Context<Env>, options: A2aRoutesOptions): string {
  const { req } = context;
  const host = options.rollout === undefined ? undefined : req.header("x-forwarded-host");
  if (host === undefined) return baseUrlOf(context, options);
  return `${req.header("x-forwarded-proto") ?? "http"}://${host}${req.header("x-forwarded-prefix") ?? ""}`;
}
