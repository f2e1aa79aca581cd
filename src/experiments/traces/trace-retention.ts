import { type Database, readNow, type Tx } from "../../platform/database/database.ts";
import { lockExperiment, markStatsDirty } from "../storage/experiments.ts";
import { deleteExpiredTokens } from "../storage/feedback-tokens.ts";
import type { RunCursor } from "../storage/runs.ts";
import {
  deleteTracesById,
  expiringSessions,
  FIRST_TRACE_ID,
  keptTraces,
  rootlessTraces,
} from "../storage/traces/trace-retention.ts";
import { rootsAfter } from "../storage/traces/traces.ts";
import { firstRoots } from "./usage/reprice.ts";

const MAX_TRACES = 200;

type RootlessFrom = { experiment_no: number; before_us: number; after: string };
type Session = { experiment_no: number; tenant_id: string };

/** Deletes expired traces as a whole, oldest first. Several processes may do this concurrently: each transaction locks the session. */
export const retentionOperations = (database: Database) => ({
  /** Deletes expired traces and expired tokens for feedback. Returns the number of deleted traces. */
  async sweep(retention_ms: number): Promise<number> {
    await database.write(deleteExpiredTokens);
    const before_us = ((await readNow(database.read)) - retention_ms) * 1000;
    let deleted = 0;
    for (const session of await expiringSessions(database.read)) {
      for (let after: RunCursor | undefined; ; ) {
        const step = await database.write((tx) => sweepNext(tx, session, before_us, after));
        deleted += step.deleted;
        after = step.last;
        if (!after) break;
      }
      for (let after: string | undefined = FIRST_TRACE_ID; after !== undefined; ) {
        const from: RootlessFrom = { ...session, before_us, after };
        // Most sessions have no expired traces without a root. This check takes no lock.
        if ((await rootlessTraces(database.read, { ...from, limit: 1 })).length === 0) break;
        const step = await database.write((tx) => sweepRootless(tx, session, from));
        deleted += step.deleted;
        after = step.last;
      }
    }
    return deleted;
  },
});

/** Deletes the next expired traces after `after`, with about 1,000 runs in total. `last` is undefined when no roots are left. */
async function sweepNext(tx: Tx, session: Session, before_us: number, after: RunCursor | undefined) {
  if (!(await lockSession(tx, session))) return { deleted: 0, last: undefined };
  const roots = firstRoots(await rootsAfter(tx, session.experiment_no, { after, before_us, limit: MAX_TRACES }));
  const ids = roots.map(({ run_id }) => run_id);
  return { deleted: await deleteExpired(tx, session, ids), last: roots.at(-1) };
}

/** Like {@link sweepNext}, for traces without a root. */
async function sweepRootless(tx: Tx, session: Session, from: RootlessFrom) {
  if (!(await lockSession(tx, session))) return { deleted: 0, last: undefined };
  const ids = await rootlessTraces(tx, { ...from, limit: MAX_TRACES });
  return { deleted: await deleteExpired(tx, session, ids), last: ids.at(-1) };
}

/** Locks the session. Returns whether its traces still expire. */
async function lockSession(tx: Tx, { experiment_no }: Session): Promise<boolean> {
  const row = await lockExperiment(tx, experiment_no);
  return row?.trace_tier === "shortlived" && row.dataset_no === null;
}

async function deleteExpired(tx: Tx, { tenant_id }: Session, trace_ids: string[]): Promise<number> {
  const kept = await keptTraces(tx, tenant_id, trace_ids);
  const expired = trace_ids.filter((trace_id) => !kept.has(trace_id));
  const sessions = await deleteTracesById(tx, tenant_id, expired);
  await markStatsDirty(
    tx,
    sessions.sort((a, b) => a - b),
  );
  return expired.length;
}
