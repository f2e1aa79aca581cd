import { isDeepStrictEqual } from "node:util";
import type { Caller } from "../../platform/contract/caller.ts";
import { readNow, type Tx } from "../../platform/database/database.ts";
import type { Hint } from "../../platform/database/hints.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { assistantIdOf } from "../assistants/assistants.ts";
import { filterOf } from "../auth/grants.ts";
import type { AgentContext } from "../context.ts";
import {
  type Cron,
  type CronCreate,
  type CronFilter,
  type CronPatch,
  type CronSearch,
  cronPayload,
  type ThreadCronCreate,
} from "../contract/crons.ts";
import { mergedMetadata } from "../metadata.ts";
import type { Runs } from "../runs/runs.ts";
import {
  countCrons,
  deleteCron,
  findCron,
  insertCron,
  lockCron,
  type NewCron,
  searchCrons,
  updateCron,
} from "../storage/crons.ts";
import type { CronRow } from "../storage/schema.ts";
import { lockThread } from "../storage/threads.ts";
import { requireThread } from "../threads/thread-states.ts";
import { checkSchedule, nextTick } from "./schedule.ts";

/** Notifies the scheduler that a cron has changed. */
const CHANGED: Hint = { kind: "crons" };

/** Scheduled runs. {@link CronScheduler} creates the runs. */
export class Crons {
  readonly #context: AgentContext;
  readonly #runs: Runs;

  constructor(context: AgentContext, runs: Runs) {
    this.#context = context;
    this.#runs = runs;
  }

  /** @param thread_id the thread of all runs; undefined if each run has a new thread */
  async create(caller: Caller, body: CronCreate | ThreadCronCreate, thread_id?: string): Promise<Cron> {
    const { schedule, timezone = null, end_time, enabled, metadata, on_run_completed, ...payload } = body;
    this.#context.webhooks.accept(payload.webhook);
    const { assistant_id } = await this.#runs.requireAssistant(caller, payload.assistant_id);
    return this.#write(async (tx) => {
      if (thread_id !== undefined) await requireThread(tx, caller, thread_id, lockThread);
      return insertCron(
        tx,
        await scheduled(tx, {
          cron_id: tx.newId(),
          tenant_id: caller.tenant_id,
          assistant_id,
          thread_id: thread_id ?? null,
          schedule,
          timezone,
          end_at: end_time?.getTime() ?? null,
          enabled: enabled ? 1 : 0,
          on_run_completed: thread_id === undefined ? (on_run_completed ?? "delete") : null,
          payload: JSON.stringify(payload),
          metadata: JSON.stringify(metadata),
          ...userOf(caller),
        }),
      );
    });
  }

  async get(caller: Caller, cron_id: string): Promise<Cron> {
    return toCron(await requireCron(this.#context.database.read, caller, cron_id));
  }

  /**
   * Computes the next tick after the current time: enabling a cron or changing its schedule creates no runs for earlier ticks. A caller
   * who changes what the runs get becomes their user. Otherwise the caller could use the permissions of the previous user.
   */
  async patch(caller: Caller, cron_id: string, body: CronPatch): Promise<Cron> {
    const { schedule, timezone, end_time, enabled, metadata, on_run_completed, ...fields } = body;
    this.#context.webhooks.accept(fields.webhook);
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
    return this.#write(async (tx) => {
      const { created_at: _, updated_at: __, ...cron } = await requireCron(tx, caller, cron_id, lockCron);
      if (on_run_completed === "delete" && cron.thread_id !== null)
        throw new ApiError("invalid_request", {
          reason:
            'body.on_run_completed: must be "keep" for a cron on an existing thread, because its runs never delete that thread',
        });
      const before = { payload: JSON.parse(cron.payload), metadata: JSON.parse(cron.metadata) };
      const payload = { ...before.payload, ...given };
      const merged_metadata = mergedMetadata(cron.metadata, metadata);
      const isChanged = !isDeepStrictEqual(before, { payload, metadata: JSON.parse(merged_metadata) });
      const changed = {
        ...cron,
        ...(isChanged && userOf(caller)),
        schedule: schedule ?? cron.schedule,
        timezone: timezone ?? cron.timezone,
        end_at: end_time === undefined ? cron.end_at : (end_time?.getTime() ?? null),
        enabled: enabled === undefined ? cron.enabled : enabled ? 1 : 0,
        on_run_completed: cron.thread_id === null ? (on_run_completed ?? cron.on_run_completed) : null,
        payload: JSON.stringify(payload),
        metadata: merged_metadata,
      };
      // Otherwise a tick that is due stays due.
      const isRescheduled = SCHEDULE_FIELDS.some((field) => changed[field] !== cron[field]);
      return updateCron(tx, isRescheduled ? await scheduled(tx, changed) : changed);
    });
  }

  async delete(caller: Caller, cron_id: string): Promise<void> {
    await this.#context.database.write(async (tx) => {
      await requireCron(tx, caller, cron_id, lockCron);
      await deleteCron(tx, caller.tenant_id, cron_id);
    });
  }

  async search(caller: Caller, body: CronSearch): Promise<Cron[]> {
    const rows = await searchCrons(this.#context.database.search, caller.tenant_id, filterIn(body, caller), body);
    return rows.map(toCron);
  }

  async count(caller: Caller, body: CronFilter): Promise<number> {
    return countCrons(this.#context.database.search, caller.tenant_id, filterIn(body, caller));
  }

  async #write(work: (tx: Tx) => Promise<CronRow>): Promise<Cron> {
    const { database } = this.#context;
    const row = await database.write(work);
    database.hints.emit(CHANGED);
    return toCron(row);
  }
}

/** Fields that determine the next tick. */
const SCHEDULE_FIELDS = ["schedule", "timezone", "end_at", "enabled"] as const;

/** Returns the user of a cron's runs. */
const userOf = ({ user_id, scopes, user }: Caller) => ({
  user_id,
  scopes: JSON.stringify(scopes),
  auth_user: user ? JSON.stringify(user) : null,
});

/** Adds the next tick of a cron, by the clock of the database. */
async function scheduled<C extends Omit<NewCron, "next_at">>(tx: Tx, cron: C): Promise<C & { next_at: number | null }> {
  const now = await readNow(tx);
  checkSchedule(cron, now);
  return { ...cron, next_at: cron.enabled ? nextTick(cron, now) : null };
}

/** Returns the filter of a search. A graph name is replaced with the ID of its default assistant. */
const filterIn = ({ assistant_id, thread_id, enabled, metadata }: CronFilter, caller: Caller) => ({
  assistant_id: assistant_id === undefined ? undefined : assistantIdOf(assistant_id),
  thread_id,
  enabled,
  metadata,
  access: filterOf(caller, "crons"),
});

async function requireCron(tx: Tx, caller: Caller, cron_id: string, find = findCron): Promise<CronRow> {
  const cron = await find(tx, caller.tenant_id, cron_id, filterOf(caller, "crons"));
  if (!cron) throw new ApiError("cron_not_found", { cron_id });
  return cron;
}

/** Returns the request fields for a cron's runs. Fields that were introduced after the cron was created have their default values. */
export const payloadOf = ({ payload }: Pick<CronRow, "payload">) => cronPayload.parse(JSON.parse(payload));

const timeOrNull = (ms: number | null) => (ms === null ? null : isoOfMilliseconds(ms));

const toCron = (row: CronRow): Cron => ({
  cron_id: row.cron_id,
  assistant_id: row.assistant_id,
  thread_id: row.thread_id,
  on_run_completed: row.on_run_completed,
  end_time: timeOrNull(row.end_at),
  schedule: row.schedule,
  timezone: row.timezone,
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.updated_at),
  user_id: row.user_id,
  payload: JSON.parse(row.payload),
  next_run_date: timeOrNull(row.next_at),
  metadata: JSON.parse(row.metadata),
  enabled: row.enabled === 1,
});
