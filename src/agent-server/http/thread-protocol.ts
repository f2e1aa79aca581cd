import type { Duplex } from "node:stream";
import type { Context } from "hono";
import type { WebSocket } from "ws";
import type { Caller } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import { accessEndError, type ClientAbort, clientAbortOf } from "../../platform/http/client-abort.ts";
import { type App, type Env, errorsOf, serve } from "../../platform/http/route.ts";
import type { SelectHeaders } from "../../platform/lib/header-selection.ts";
import { JsonError } from "../../platform/lib/json/json.ts";
import type { Log } from "../../platform/lib/log.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import { eventSelection, type ProtocolCommand, protocolCommand } from "../contract/thread-protocol.ts";
import type { StreamedEvent } from "../engine/index.ts";
import { CommandError, errorEvent, errorResponse, parsed } from "../protocols/thread-protocol/command-error.ts";
import type { Sender, ThreadCommands } from "../protocols/thread-protocol/commands.ts";
import { type ProtocolEvent, selector } from "../protocols/thread-protocol/protocol-events.ts";
import { isPythonClient } from "../protocols/thread-protocol/python-client.ts";
import type { ThreadStreams } from "../protocols/thread-protocol/thread-streams.ts";
import { SseFormatter, sseResponse } from "./sse.ts";
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
      const { thread_id } = params;
      const response = await thread_commands.execute(senderOf(caller, context), thread_id, body);
      const since = response.type === "success" ? response.meta.applied_through_seq : undefined;
      if (since !== undefined && isPythonClient(context.req.header("user-agent")))
        thread_streams.startedByPython(thread_id, since);
      return context.json(response);
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

interface ThreadSocketOptions {
  caller: Caller;
  thread_id: string;
  streams: ThreadStreams;
  /** See {@link StreamOptions}. */
  isPython: boolean;
  /** Executes a command that is not a subscription. */
  execute(command: ProtocolCommand): Promise<object>;
  parse(text: string): Promise<unknown>;
  /** Aborted when the connection closes or the caller loses access. */
  client: ClientAbort;
  heartbeat_ms: number;
  log: Log;
}

const MAX_SUBSCRIPTIONS = 100;
const MAX_MISSED_PONGS = 4;

/** A code from 4000 is 4000 plus the HTTP status. Clients do not connect again after most codes for 4xx. */
const CLOSE_CODES = { access_ended: 4401, not_found: 4404 };

interface Subscription {
  isSelected(event: ProtocolEvent): boolean;
  /** The `seq` of its last event, while the reader repeats earlier ones. */
  seen: number | undefined;
}

function wants(subscription: Subscription, event: ProtocolEvent): boolean {
  const { seen } = subscription;
  if (seen !== undefined && event.seq >= seen) subscription.seen = undefined;
  return (seen === undefined || event.seq > seen) && subscription.isSelected(event);
}

/** Serves the commands and the subscriptions of one WebSocket, one command after the other. */
class ThreadSocket {
  readonly #socket: WebSocket;
  /** Below the socket, for writing several messages at once. */
  readonly #connection: Duplex;
  readonly #options: ThreadSocketOptions;
  readonly #subscriptions = new Map<string, Subscription>();
  /** Ends the reader of the thread, which sends the events for all subscriptions. */
  #reader = new AbortController();
  /** The `seq` of the last event that the reader has passed on; undefined before the first subscription. */
  #position: number | undefined;
  #highest = 0;
  #count = 0;
  /** The commands that have been received and not been executed, and the end of the last one. */
  #commands = 0;
  #last: Promise<void> = Promise.resolve();
  /** The batch of events that is being sent. */
  #delivery: Promise<void> | undefined;

  constructor(socket: WebSocket, connection: Duplex, options: ThreadSocketOptions) {
    this.#socket = socket;
    this.#connection = connection;
    this.#options = options;
    const unwatch = options.client.watchAccess();
    const stopHeartbeat = this.#startHeartbeat();
    options.client.signal.addEventListener("abort", () => this.#endAccess());
    socket.on("message", (data) => {
      // Paused until the command is executed, so that a client cannot queue commands in memory.
      socket.pause();
      this.#commands += 1;
      this.#last = this.#last.then(() => this.#receive(String(data)));
    });
    // Errors of a socket are followed by `close`.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      stopHeartbeat();
      unwatch();
      options.client.abort(new Error("The client disconnected."));
    });
  }

  /** Commands and batches of events take turns, so that a new subscription misses no event and receives none before its response. */
  async #receive(text: string): Promise<void> {
    await this.#delivery;
    let id: number | null = null;
    try {
      // The connection, or the access, may have ended during the delivery.
      if (this.#options.client.signal.aborted) return;
      const command = parsed(protocolCommand, await this.#options.parse(text));
      id = command.id;
      if (command.method === "subscription.subscribe") await this.#subscribe(command);
      else if (command.method === "subscription.unsubscribe") this.#unsubscribe(command);
      else await this.#send(await this.#options.execute(command));
    } catch (error) {
      await this.#fail(id, error);
    } finally {
      this.#commands -= 1;
      this.#socket.resume();
    }
  }

  async #subscribe({ id, params }: ProtocolCommand): Promise<void> {
    const { caller, thread_id, streams, isPython, client } = this.#options;
    const { since, ...filter } = parsed(eventSelection, params);
    if (this.#subscriptions.size >= MAX_SUBSCRIPTIONS)
      throw new CommandError("invalid_argument", `A connection can have at most ${MAX_SUBSCRIPTIONS} subscriptions.`);
    const reader = new AbortController();
    const options = { signal: AbortSignal.any([reader.signal, client.signal]), isPython };
    const { after, events } = await streams.open(caller, thread_id, { since, channels: filter.channels }, options);
    const subscription_id = String(++this.#count);
    await this.#send({ type: "success", id, result: { subscription_id }, meta: { thread_id } });
    let seen: number | undefined;
    if (this.#position === undefined || after < this.#position) {
      // One reader for all subscriptions keeps their events in the order of the thread. It begins again at the position of the new subscription.
      this.#reader.abort(new Error("Another reader begins earlier."));
      for (const subscription of this.#subscriptions.values()) subscription.seen ??= this.#position;
      this.#reader = reader;
      // Not the old position: another subscription may begin before this reader has delivered anything.
      this.#position = after;
      void this.#stream(events, options.signal);
    } else {
      // A delayed run can start after later ones: its events have lower numbers, so `seen` is set only while events are repeated.
      if (after > this.#highest) seen = after;
      reader.abort(new Error("The existing reader of the connection already covers these events."));
      await events.return(undefined);
    }
    this.#subscriptions.set(subscription_id, { isSelected: selector(filter), seen });
  }

  #unsubscribe({ id, params }: ProtocolCommand): void {
    const { subscription_id } = params;
    if (!this.#subscriptions.delete(String(subscription_id)))
      throw new CommandError("no_such_subscription", `The subscription "${subscription_id}" does not exist.`);
    void this.#send({ type: "success", id, result: {}, meta: { thread_id: this.#options.thread_id } });
  }

  async #stream(batches: AsyncGenerator<readonly ProtocolEvent[]>, signal: AbortSignal): Promise<void> {
    try {
      for await (const events of batches) {
        while (this.#commands > 0) await this.#last;
        if (signal.aborted) return;
        this.#delivery = this.#deliver(events);
        await this.#delivery;
        this.#delivery = undefined;
      }
      await this.#send(errorResponse(null, new CommandError("unknown_error", "The thread was deleted.")));
      this.#socket.close(CLOSE_CODES.not_found, "The thread was deleted.");
    } catch (error) {
      if (signal.aborted) return;
      this.#options.log.warn({ error }, "thread protocol stream failed");
      this.#socket.terminate();
    }
  }

  /** Sends each event once if a subscription selects it. Resolves when the client has taken them. */
  async #deliver(events: readonly ProtocolEvent[]): Promise<void> {
    let sent: Promise<void> | undefined;
    // One system call for the batch: with one per event, 1,000 readers of 100 events/s have a backlog that grows.
    this.#connection.cork();
    for (const event of events) {
      let isWanted = false;
      // Each subscription has to see the event.
      for (const subscription of this.#subscriptions.values()) isWanted = wants(subscription, event) || isWanted;
      if (isWanted) sent = this.#sendText(event.data);
      this.#position = event.seq;
      this.#highest = Math.max(this.#highest, event.seq);
    }
    this.#connection.uncork();
    await sent;
  }

  async #fail(id: number | null, error: unknown): Promise<void> {
    const invalid = error instanceof JsonError && new CommandError("invalid_argument", `The message ${error.message}.`);
    const isKnown = invalid || error instanceof CommandError || error instanceof ApiError;
    if (!isKnown) this.#options.log.error({ error }, "thread protocol command failed");
    await this.#send(errorResponse(id, invalid || error));
    if (error instanceof ApiError && error.code === "thread_not_found")
      this.#socket.close(CLOSE_CODES.not_found, "The thread does not exist.");
  }

  #endAccess(): void {
    const refusal = accessEndError(this.#options.client);
    if (!refusal) return;
    void this.#send(errorResponse(null, new CommandError("permission_denied", refusal.message)));
    this.#socket.close(CLOSE_CODES.access_ended, "Access has ended.");
  }

  /** Proxies close idle connections. A client that has vanished takes no data and answers no ping. */
  #startHeartbeat(): () => void {
    let missed = 0;
    let queued = 0;
    this.#socket.on("pong", () => {
      missed = 0;
    });
    const timer = setInterval(() => {
      const { bufferedAmount } = this.#socket;
      // A slow client answers after the data before the ping. While a command is executed, answers are not read.
      if (bufferedAmount < queued || (this.#commands > 0 && !this.#delivery)) missed = 0;
      else if (++missed > MAX_MISSED_PONGS) return this.#socket.terminate();
      queued = bufferedAmount;
      this.#socket.ping();
    }, this.#options.heartbeat_ms);
    return () => clearInterval(timer);
  }

  #send = (message: object): Promise<void> => this.#sendText(JSON.stringify(message));

  /** Resolves when the text is written or the connection is closed: `close` ends its streams. */
  #sendText(text: string): Promise<void> {
    return new Promise((resolve) => this.#socket.send(text, () => resolve()));
  }
}
