import { sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import { RUNNING } from "../runs.ts";
import type { RunRow } from "../schema.ts";
import { type Claim, claimRuns, nextQueuedWorkspace } from "./claims.ts";

/** Rules of the operator for claims. Undefined: none. */
export interface ClaimRules {
  /** Maximum number of running runs of a workspace. */
  per_workspace: number | undefined;
  /** Maximum number of running runs of a user. */
  per_user: number | undefined;
  /** How many runs a workspace claims before it is the next workspace's turn, by workspace. Default: 1. */
  weights: Readonly<Record<string, number>> | undefined;
}

/** Whose turn it is, and how many more runs belong to it. */
export interface Turn {
  tenant_id: string;
  left: number;
}

/** Before the first turn: no workspace has this id. */
export const FIRST_TURN: Turn = { tenant_id: "", left: 0 };

/** Key of the advisory lock that makes the limits exact while several processes claim. */
const CLAIM_LOCK = 20242;

/**
 * Claims for one workspace after the other, in circular order of their ids, as many runs as the rules allow. Without weights, a turn ends
 * when nothing more can be claimed or the call ends. Within a workspace, the oldest run of a user below the limit is the first.
 *
 * @param turn the turn in which the last call ended
 */
export async function claimInTurns(
  tx: Tx,
  { rules, turn: last, ...claim }: Claim & { rules: ClaimRules; turn: Turn },
): Promise<{ runs: RunRow[]; turn: Turn }> {
  const { per_workspace = Number.POSITIVE_INFINITY, per_user, weights } = rules;
  // SQLite has one writer at a time.
  if (tx.dialect.name === "postgres") await tx.run(sql`select pg_advisory_xact_lock(${CLAIM_LOCK}, 0)`.compile(tx.k));
  const running = await countRunning(tx);
  const runs: RunRow[] = [];
  let turn = last;
  const finished = new Set<string>();
  // Once this many turns in a row belong to finished workspaces, all are finished.
  for (let skipped = 0; runs.length < claim.limit && skipped <= finished.size; ) {
    if (turn.left <= 0) {
      const tenant_id = await nextQueuedWorkspace(tx, { after: turn.tenant_id, except: NO_WORKSPACE });
      if (tenant_id === undefined) break;
      turn = { tenant_id, left: weights ? (weights[tenant_id] ?? 1) : Number.POSITIVE_INFINITY };
    }
    const { tenant_id, left } = turn;
    const users = running.get(tenant_id) ?? new Map<string, number>();
    running.set(tenant_id, users);
    const wanted = Math.min(claim.limit - runs.length, left);
    const limit = finished.has(tenant_id) ? 0 : Math.min(wanted, per_workspace - sumOf(users.values()));
    const claimed = limit > 0 ? await claimOf(tx, { ...claim, tenant_id, limit }, users, per_user) : [];
    runs.push(...claimed);
    skipped = claimed.length > 0 ? 0 : skipped + 1;
    if (claimed.length < wanted) finished.add(tenant_id);
    turn = { tenant_id, left: claimed.length < wanted ? 0 : left - claimed.length };
  }
  return { runs, turn: weights ? turn : { ...turn, left: 0 } };
}

const NO_WORKSPACE = FIRST_TURN.tenant_id;

/** Claims runs of one workspace, and counts them in `users`. */
async function claimOf(tx: Tx, claim: Claim, users: Map<string, number>, per_user?: number): Promise<RunRow[]> {
  const runs: RunRow[] = [];
  while (runs.length < claim.limit) {
    // With a limit for users, one run at a time: each can be the last that its user may have.
    const limit = per_user === undefined ? claim.limit : 1;
    const isFull = ([, count]: [string, number]) => per_user !== undefined && count >= per_user;
    const except_users = [...users].filter(isFull).map(([user_id]) => user_id);
    const claimed = await claimRuns(tx, { ...claim, limit, except_users });
    if (claimed.length === 0) break;
    runs.push(...claimed);
    for (const { user_id } of claimed) users.set(user_id, (users.get(user_id) ?? 0) + 1);
    if (claimed.length < limit) break;
  }
  return runs;
}

/** The number of running runs of each user, by workspace. */
async function countRunning(tx: Tx): Promise<Map<string, Map<string, number>>> {
  const rows = await tx.all(
    tx.k
      .selectFrom("runs")
      .select((e) => ["tenant_id", "user_id", e.fn.countAll<number>().as("count")])
      .where("status", "=", RUNNING)
      .groupBy(["tenant_id", "user_id"]),
  );
  const workspaces = new Map<string, Map<string, number>>();
  for (const { tenant_id, user_id, count } of rows)
    workspaces.set(tenant_id, (workspaces.get(tenant_id) ?? new Map()).set(user_id, Number(count)));
  return workspaces;
}

const sumOf = (counts: Iterable<number>): number => [...counts].reduce((sum, count) => sum + count, 0);
