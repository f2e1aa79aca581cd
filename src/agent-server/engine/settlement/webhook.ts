import type { Tx } from "../../../platform/database/database.ts";
import { isoOfMilliseconds } from "../../../platform/lib/times.ts";
import { publicKwargs } from "../../auth/run-access.ts";
import { findRun } from "../../storage/runs.ts";
import type { PushConfig, RunRow, WebhookDeliveryRow } from "../../storage/schema.ts";
import { findTask } from "../../storage/tasks.ts";
import { findThread } from "../../storage/threads.ts";
import { insertWebhookDelivery, pushDeliveryId } from "../../storage/webhooks.ts";

/** The parts of a webhook payload that result from the end of a run, as JSON texts. */
interface RunEnd {
  /** Undefined if the run has not changed the thread's values. */
  values?: string | undefined;
  /** `{error, message}`. */
  error?: string | null;
}

/**
 * Stores the webhook and the push notifications of a run, in the transaction that ends the run, before its thread is deleted. The payload
 * is a copy: later runs change the thread, and the thread of a stateless run is deleted.
 */
export async function storeWebhooks(
  tx: Tx,
  { push_configs, ...key }: RunRow,
  { values, error }: RunEnd,
): Promise<void> {
  if (key.webhook === null && push_configs === null) return;
  const run = (await findRun(tx, key)) as RunRow;
  const { run_id, tenant_id, webhook } = run;
  const insert = (url: string, delivery: Pick<WebhookDeliveryRow, "delivery_id" | "push"> & { payload: string }) =>
    // A path to a route of the project has no origin.
    insertWebhookDelivery(tx, { run_id, tenant_id, url, origin: URL.parse(url)?.origin ?? "", ...delivery });
  if (webhook !== null) {
    const state = values ?? (await findThread(tx, tenant_id, run.thread_id))?.values ?? null;
    await insert(webhook, { delivery_id: run_id, payload: payloadOf(run, state, error ?? null), push: null });
  }
  const task = push_configs === null ? undefined : await findTask(tx, run);
  for (const config of task ? (JSON.parse(push_configs as string) as PushConfig[]) : []) {
    const delivery_id = pushDeliveryId(run_id, config.id);
    await insert(config.url, { delivery_id, payload: run.output ?? "null", push: JSON.stringify({ config, task }) });
  }
}

/** Returns JSON text. The values are not parsed, because parsing a state of several megabytes would block the event loop. */
function payloadOf(run: RunRow, values: string | null, error: string | null): string {
  const { run_id, thread_id, assistant_id, status, multitask_strategy, cancel_reason, started_at, ended_at } = run;
  const fields = {
    run_id,
    thread_id,
    assistant_id,
    created_at: isoOfMilliseconds(run.created_at),
    updated_at: isoOfMilliseconds(run.updated_at),
    status,
    multitask_strategy,
    ...(cancel_reason !== null && { cancel_reason }),
    run_started_at: started_at === null ? null : isoOfMilliseconds(started_at),
    run_ended_at: ended_at === null ? null : isoOfMilliseconds(ended_at),
  };
  const texts = { metadata: run.metadata, kwargs: publicKwargs(run), values, ...(error !== null && { error }) };
  const members = Object.entries(texts).map(([name, text]) => `,"${name}":${text}`);
  return `${JSON.stringify(fields).slice(0, -1)}${members.join("")}}`;
}
