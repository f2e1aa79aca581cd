import type { Context } from "hono";
import type { Caller } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import { clientAbortOf } from "../../platform/http/client-abort.ts";
import { type App, type Env, errorsOf, serve } from "../../platform/http/route.ts";
import type { SelectHeaders } from "../../platform/lib/header-selection.ts";
import type { Log } from "../../platform/lib/log.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import type { StreamedEvent } from "../engine/index.ts";
import { CommandError, errorResponse } from "../protocols/thread-protocol/command-error.ts";
import type { Sender, ThreadCommands } from "../protocols/thread-protocol/commands.ts";
import { isPythonClient } from "../protocols/thread-protocol/python-client.ts";
import type { ThreadStreams } from "../protocols/thread-protocol/thread-streams.ts";
import { SseFormatter, sseResponse } from "./sse.ts";
import { ThreadSocket } from "./thread-socket.ts";
import { withHeadersOf } from "./trace-headers.ts";

export interface ThreadProtocolOptions {
  thread_commands: ThreadCommands;
  thread_streams: ThreadStreams;
  heartbeat_ms: number;
  configurable_headers: SelectHeaders | undefined;
  log: Log;
}

export function serveThreadProtocol(app: App, options: ThreadProtocolOptions): void {
  const { thread_commands, thread_streams, heartbeat_ms, log } = options;
  const { sendCommand, streamEvents, openSocket } = agentServerRoutes.thread_protocol;
  const withHeaders = withHeadersOf(options.configurable_headers);
  const senderOf = (caller: Caller, context: Context<Env>): Sender => ({
    caller,
    authorize: context.get("authorize"),
    adapt: (run) => withHeaders(run, context),
  });
  const formatter = new ProtocolFormatter();
  const errors = errorsOf("invalid_command");

  serve(
    app,
    sendCommand,
    async ({ caller, params, body, context }) => {
      return context.json(await thread_commands.execute(senderOf(caller, context), params.thread_id, body));
    },
    errors,
  );

  serve(
    app,
    streamEvents,
    async ({ caller, params, body, context }) => {
      const client = clientAbortOf(context);
      const start = { signal: client.signal, isPython: isPythonClient(context.req.header("user-agent")) };
      const events = await thread_streams.events(caller, params.thread_id, body, start);
      return sseResponse(untilDeleted(events), {
        client,
        heartbeat_ms,
        formatter,
        onError: (error) => log.warn({ error }, "thread protocol stream failed"),
      });
    },
    errors,
  );

  serve(app, openSocket, ({ caller, params, context }) => {
    const accept = context.env?.accept;
    if (!accept) throw new ApiError("websocket_required");
    const { thread_id } = params;
    const sender = senderOf(caller, context);
    const body_parser = context.get("body_parser");
    const client = clientAbortOf(context);
    accept((socket, connection) => {
      new ThreadSocket(socket, connection, {
        caller,
        thread_id,
        streams: thread_streams,
        isPython: isPythonClient(context.req.header("user-agent")),
        parse: (text) => body_parser.parseText(text),
        async execute(command) {
          const parts = { params, query: {}, body: command, caller };
          const allowed = (await sender.authorize?.(sendCommand, parts)) ?? parts;
          const { caller: authorized, body } = allowed;
          return thread_commands.execute({ ...sender, caller: authorized }, thread_id, body as typeof command);
        },
        client,
        heartbeat_ms,
        log,
      });
    });
    return context.body(null);
  });
}

class ProtocolFormatter extends SseFormatter {
  override errorEvent({ message }: { message: string }): StreamedEvent {
    return errorEvent(new CommandError("permission_denied", message));
  }
}

async function* untilDeleted(
  events: AsyncGenerator<readonly StreamedEvent[]>,
): AsyncGenerator<readonly StreamedEvent[]> {
  yield* events;
  yield [errorEvent(new CommandError("unknown_error", "The thread was deleted."))];
}

/** An error that ends a stream. It belongs to no command. */
const errorEvent = (error: CommandError): StreamedEvent => ({
  event: "error",
  data: JSON.stringify(errorResponse(null, error)),
});
