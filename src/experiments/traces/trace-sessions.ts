import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { RunFields } from "../contract/traces/traces.ts";
import { NO_STATS } from "../sessions/stats.ts";
import {
  experimentsById,
  experimentsByName,
  insertExperiment,
  lockExperiments,
  markStatsDirty,
} from "../storage/experiments.ts";
import type { ExperimentRow } from "../storage/schema.ts";
import type { RunOperation } from "./operation.ts";

/** The session of runs that do not specify one. */
const DEFAULT_SESSION = "default";

const ADDRESS = /^lrn:agents\/([^/]+)\/environments\/([^/]+)$/;

/** The name of the session in a run's fields. */
function nameIn({ session_name, address }: RunFields): string | undefined {
  if (session_name !== undefined || address === undefined) return session_name;
  const [, agent, environment] = ADDRESS.exec(address) ?? [];
  return agent === undefined ? undefined : `${agent}/${environment}`;
}

/** The sessions that a request names or whose runs it may change. They are locked: requests for the same traces run one at a time. */
export class TraceSessions {
  readonly #tx: Tx;
  readonly #byId = new Map<string, ExperimentRow>();
  readonly #byName = new Map<string, ExperimentRow>();
  readonly #byNumber = new Map<number, ExperimentRow>();

  private constructor(tx: Tx) {
    this.#tx = tx;
  }

  /**
   * Creates the sessions that do not exist.
   *
   * @param numbers the sessions of the runs that the request may change
   * @param needs_default whether a run belongs to the default session
   */
  static async open(
    tx: Tx,
    caller: Caller,
    operations: readonly RunOperation[],
    numbers: readonly number[],
    needs_default: boolean,
    now_ms: number,
  ): Promise<TraceSessions> {
    const sessions = new TraceSessions(tx);
    const ids = new Set<string>();
    const starts = new Map<string, number>(needs_default ? [[DEFAULT_SESSION, now_ms * 1000]] : []);
    for (const { fields } of operations) {
      const name = nameIn(fields);
      if (fields.session_id !== undefined) ids.add(fields.session_id);
      else if (name !== undefined && !starts.has(name)) starts.set(name, fields.start_time ?? now_ms * 1000);
    }
    const found = await experimentsById(tx, caller.tenant_id, [...ids]);
    let named: ExperimentRow[];
    let locked: Map<number, ExperimentRow>;
    // A session that another transaction deletes before it is locked is created again.
    do {
      named = await findOrCreate(tx, caller, starts);
      const wanted = [...named, ...found].map(({ experiment_no }) => experiment_no);
      const rows = await lockExperiments(tx, [...wanted, ...numbers]);
      locked = new Map(rows.map((row) => [row.experiment_no, row]));
    } while (named.some(({ experiment_no }) => !locked.has(experiment_no)));
    for (const row of locked.values()) {
      sessions.#byId.set(row.experiment_id, row);
      sessions.#byName.set(row.name, row);
      sessions.#byNumber.set(row.experiment_no, row);
    }
    return sessions;
  }

  /**
   * The session that is specified in the fields of a run; undefined if none is specified.
   *
   * @throws ApiError when `session_id` is unknown
   */
  named(fields: RunFields): number | undefined {
    const name = nameIn(fields);
    if (fields.session_id !== undefined) {
      const row = this.#byId.get(fields.session_id);
      if (!row) throw new ApiError("session_not_found");
      return row.experiment_no;
    }
    return name === undefined ? undefined : this.#byName.get(name)?.experiment_no;
  }

  /** @throws ApiError when the session is missing, because the parent or root run that specifies it was refused */
  default_no(): number {
    const session = this.#byName.get(DEFAULT_SESSION);
    if (!session)
      throw new ApiError("bad_trace_body", {
        reason:
          "The run was rejected because its parent or root run was rejected. Correct that run, and send both again.",
      });
    return session.experiment_no;
  }

  /** Null for a session without a dataset. */
  datasetOf(experiment_no: number): number | null {
    return this.#byNumber.get(experiment_no)?.dataset_no ?? null;
  }

  /** Marks the statistics as outdated. The next read computes them. */
  async markDirty(numbers: readonly number[]): Promise<void> {
    await markStatsDirty(
      this.#tx,
      [...new Set(numbers)].filter((no) => no !== 0).sort((a, b) => a - b),
    );
  }
}

async function findOrCreate(tx: Tx, { tenant_id }: Caller, starts: Map<string, number>): Promise<ExperimentRow[]> {
  const names = [...starts.keys()].sort();
  const found = await experimentsByName(tx, tenant_id, names);
  const existing = new Set(found.map(({ name }) => name));
  const missing = names.filter((name) => !existing.has(name));
  for (const name of missing)
    await insertExperiment(tx, {
      experiment_id: newId(),
      tenant_id,
      dataset_no: null,
      test_run_number: null,
      name,
      description: null,
      start_us: starts.get(name) as number,
      end_us: null,
      extra: null,
      trace_tier: "longlived",
      default_dataset_id: null,
      stats: NO_STATS,
    });
  return missing.length === 0 ? found : experimentsByName(tx, tenant_id, names);
}
