import type { Caller } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import { clientAbortOf } from "../../platform/http/client-abort.ts";
import { type App, serve } from "../../platform/http/route.ts";
import { agUiRoutes } from "../contract/ag-ui.ts";
import type { Interrupt } from "../contract/records.ts";
import type { StreamedEvent } from "../engine/index.ts";
import type { AgUiProjector } from "../protocols/ag-ui/projector.ts";
import { hasCommand, openInterrupts, runOf, threadIdOf } from "../protocols/ag-ui/run-request.ts";
import type { Runs } from "../runs/runs.ts";
import type { Threads } from "../threads/threads.ts";
import type { RunRoutesOptions } from "./runs.ts";
import { DataFormatter, sseResponse } from "./sse.ts";
import { withHeadersOf } from "./trace-headers.ts";

export interface AgUiRoutesOptions extends RunRoutesOptions {
  threads: Threads;
}

type Events = AsyncGenerator<readonly StreamedEvent[]>;

export function serveAgUi(app: App, options: AgUiRoutesOptions): void {
  const { runs, threads, disconnects, heartbeat_ms, log } = options;
  const withHeaders = withHeadersOf(options.configurable_headers);
  const formatter = new AgUiFormatter();
  const onError = (error: unknown): void => log.warn({ error }, "response failed");

  serve(app, agUiRoutes.runAgent, async ({ caller, params: { assistant_id }, body, context }) => {
    // Imported on first use: most services have no AG-UI clients.
    const { AgUiProjector } = await import("../protocols/ag-ui/projector.ts");
    const projector = new AgUiProjector(body);
    const thread_id = threadIdOf(caller, body.threadId);
    await runs.requireAssistant(caller, assistant_id);
    const thread = await threads.find(caller, thread_id);
    const open = hasCommand(body) ? [] : openInterrupts(thread);
    const client = clientAbortOf(context);
    const shared = { heartbeat_ms, formatter, client, onError };
    if (open.length > 0) return sseResponse(repeated(projector, open), shared);
    const run = await runs.create(caller, thread_id, withHeaders(runOf(assistant_id, body, thread), context));
    disconnects.watch(run, client.signal);
    const headers = { "Content-Location": `/threads/${thread_id}/runs/${run.run_id}` };
    const events = projected(projector, runs.eventsOfNew(run, client.signal), () => endOf(runs, caller, run));
    return sseResponse(events, { ...shared, headers });
  });
}

async function* repeated(projector: AgUiProjector, interrupts: readonly Interrupt[]): Events {
  yield [...projector.start(), ...projector.repeat(interrupts)];
}

async function* projected(projector: AgUiProjector, events: Events, end: () => ReturnType<typeof endOf>): Events {
  yield projector.start();
  for await (const batch of events) yield projector.take(batch);
  yield projector.finish(await end());
}

/** Returns the ended run; undefined if it was deleted or rolled back. */
async function endOf(runs: Runs, caller: Caller, { run_id }: { run_id: string }) {
  try {
    return await runs.find(caller, { run_id });
  } catch (error) {
    if (error instanceof ApiError && error.code === "run_not_found") return undefined;
    throw error;
  }
}

class AgUiFormatter extends DataFormatter {
  override errorEvent({ error, message }: { error: string; message: string }): StreamedEvent {
    return { event: "RUN_ERROR", data: JSON.stringify({ type: "RUN_ERROR", message, code: error }) };
  }
}
