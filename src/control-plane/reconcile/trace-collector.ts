import { Agent, type IncomingMessage, request } from "node:http";
import { z } from "zod";
import { uuid } from "../../platform/contract/fields.ts";
import { EARLIEST_MS, LATEST_MS } from "../../platform/contract/iso-time.ts";
import { ApiError } from "../../platform/errors.ts";
import type { Wait } from "../../platform/lib/clock.ts";
import { parseUntrusted } from "../../platform/lib/json/json.ts";
import type { Log } from "../../platform/lib/log.ts";
import { Semaphore } from "../../platform/lib/semaphore.ts";
import { withTimeout } from "../../platform/lib/signal.ts";

/** Stores the traces of workspaces. All methods must be idempotent, because calls are repeated after errors. */
export interface CollectedTraces {
  /** @param body a body of `POST /runs/batch` */
  store(tenant_id: string, body: Uint8Array): Promise<void>;
  end(tenant_id: string, end: ReportedTraceEnd & { error: string | undefined }): Promise<void>;
  delete(tenant_id: string, run_ids: string[]): Promise<void>;
}

/** An instance whose traces are collected. They belong to the workspace `tenant_id` of its deployment. */
export interface TracedInstance {
  instance_id: string;
  deployment_id: string;
  tenant_id: string;
  address: string;
  api_key: string;
}

/** Fetches and stores the traces of an instance until the signal is aborted. The promise never rejects. */
export type CollectTraces = (instance: TracedInstance, signal: AbortSignal) => Promise<void>;

interface CollectorOptions {
  traces: CollectedTraces;
  wait: Wait;
  log: Log;
}

/** Maximum size of an entry: the limit of an ingestion request. */
const MAX_BODY_BYTES = 64 * 2 ** 20;
/** Time limit of a request. The instance responds within 25 s, even if it has no traces. */
const REQUEST_MS = 60_000;
const BODY_MS = 10_000;
const RETRY_MS = 1_000;
/** Retry interval for images without Threadmill, which do not have the route. */
const NO_ROUTE_MS = 60_000;
/** An entry that cannot be stored must not delay the following entries forever. */
const MAX_ATTEMPTS = 5;
/** Maximum number of entries in memory, across all instances. */
const MAX_ENTRIES = 4;

/**
 * Returns a function that collects the traces of instances. An entry is acknowledged by the next request, after it was stored or
 * discarded, so that a crash of this process loses no entry.
 */
export function traceCollector(options: CollectorOptions): CollectTraces {
  const slots = new Semaphore(MAX_ENTRIES);
  return async (instance, signal) => {
    const { deployment_id, instance_id } = instance;
    // A stopping instance accepts no new connections, but still accepts requests on this one.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let acknowledgement = "";
    let failures = 0;
    const attempts = { entry_id: "", count: 0 };
    while (!signal.aborted) {
      try {
        const asked_at = performance.now();
        const response = await fetchEntry(instance, acknowledgement, { agent, signal });
        acknowledgement = "";
        failures = 0;
        if (!response) {
          // Another server could answer at once. An instance waits for an entry, unless it stops.
          if (performance.now() - asked_at < RETRY_MS) await options.wait(RETRY_MS, signal);
          continue;
        }
        await slots.use(signal, async () => {
          const entry_id = header(response, "x-trace-entry");
          const body = await readBody(response);
          attempts.count = attempts.entry_id === entry_id ? attempts.count + 1 : 1;
          attempts.entry_id = entry_id;
          const result = await storeEntry(header(response, "x-trace-kind"), body, instance, options, attempts.count);
          acknowledgement = `?${result}=${encodeURIComponent(entry_id)}`;
        });
        // Each refusal is a line in the log of the service.
        if (acknowledgement.startsWith("?refused")) await options.wait(RETRY_MS, signal);
      } catch (error) {
        const isRouteMissing = error instanceof NoRouteError;
        if (failures++ === 0 && !isRouteMissing && !signal.aborted)
          options.log.info({ deployment_id, instance_id, error }, "trace collection failed; retrying");
        await options.wait(isRouteMissing ? NO_ROUTE_MS : RETRY_MS, signal);
      }
    }
    agent.destroy();
  };
}

class NoRouteError extends Error {}

const header = ({ headers }: IncomingMessage, name: string): string => headers[name]?.toString() ?? "";

/** @returns undefined if the instance has no entry */
function fetchEntry(
  { address, api_key }: TracedInstance,
  acknowledgement: string,
  { agent, signal }: { agent: Agent; signal: AbortSignal },
): Promise<IncomingMessage | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${address}/internal/traces/wait${acknowledgement}`, {
      method: "POST",
      agent,
      headers: { "x-api-key": api_key, "content-length": 0 },
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
    });
    sent.on("error", reject);
    sent.on("response", (response) => {
      const { statusCode = 0 } = response;
      if (statusCode === 200 && header(response, "x-trace-entry") !== "") return resolve(response);
      // The connection can be reused only after the response has been read.
      response.resume().on("error", reject);
      if (statusCode === 204) response.on("end", () => resolve(undefined));
      // Also 200, without an entry: the image has another server, which answers every request.
      else if (statusCode < 500) reject(new NoRouteError());
      else reject(new Error(`The instance responded with status ${statusCode}.`));
    });
    sent.end();
  });
}

async function readBody(response: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const read = async () => {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes > MAX_BODY_BYTES) break;
      chunks.push(chunk);
    }
    return chunks;
  };
  const isComplete = await withTimeout(read(), BODY_MS);
  if (isComplete && bytes <= MAX_BODY_BYTES) return Buffer.concat(chunks);
  response.destroy();
  throw new Error(isComplete ? "The traces exceed 64 MiB." : `The traces did not arrive within ${BODY_MS / 1000} s.`);
}

/** @throws if a retry may succeed */
async function storeEntry(
  kind: string,
  body: Uint8Array,
  { tenant_id, deployment_id, instance_id }: TracedInstance,
  { traces, log }: CollectorOptions,
  attempt: number,
): Promise<"stored" | "refused"> {
  try {
    if (kind === "runs") await traces.store(tenant_id, body);
    else if (kind === "delete") await traces.delete(tenant_id, parsed(deletedRuns, body));
    else {
      const { error, ...end } = parsed(traceEnd, body);
      await traces.end(tenant_id, { ...end, error });
    }
    return "stored";
  } catch (error) {
    const isRefused = error instanceof ApiError && error.code !== "unavailable";
    if (!isRefused && attempt < MAX_ATTEMPTS) throw error;
    log.warn({ deployment_id, instance_id, error }, "a trace report of the instance was discarded");
    return "refused";
  }
}

function parsed<T>(schema: { parse(value: unknown): T }, body: Uint8Array): T {
  try {
    return schema.parse(parseUntrusted(Buffer.from(body).toString()));
  } catch (cause) {
    throw new ApiError("invalid_request", { reason: "The instance sent an invalid trace report." }, cause as Error);
  }
}

/** An instance's report that an agent run has ended. The runs of its trace that are still open get the error `open_error`. */
const traceEnd = z.object({
  run_id: uuid,
  name: z.string().max(1_000),
  session_name: z.string().min(1).max(1_000),
  started_at: z.int().min(EARLIEST_MS).max(LATEST_MS),
  error: z.string().optional(),
  open_error: z.string(),
});

type ReportedTraceEnd = z.infer<typeof traceEnd>;

/** IDs of the agent runs whose traces are to be deleted. */
const deletedRuns = z.array(uuid).max(1_000);
