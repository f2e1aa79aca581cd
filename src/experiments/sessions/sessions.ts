import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { Session, SessionCreate, SessionQuery, SessionUpdate } from "../contract/sessions.ts";
import { datasetIds, getDataset, getExperiment } from "../lookups.ts";
import { parseJson, toJson, toSession } from "../serialization/records.ts";
import { clearBaseline, findDataset, lockDataset, updateDataset } from "../storage/datasets.ts";
import {
  deleteExperiment,
  type ExperimentOrder,
  findExperimentByName,
  insertExperiment,
  listExperiments,
  lockExperiment,
  updateExperiment,
} from "../storage/experiments.ts";
import type { ExperimentRow } from "../storage/schema.ts";
import { newestRuns } from "../storage/traces/traces.ts";
import { refreshDirty } from "./refresh-stats.ts";
import { NO_STATS } from "./stats.ts";

/** Operations on experiments, which the API calls sessions. */
export const sessionOperations = (database: Database) => ({
  async list(caller: Caller, query: SessionQuery): Promise<Session[]> {
    const { read } = database;
    const datasets = await selectedDatasets(read, caller, query);
    const dataset_no = datasets && [...datasets.keys()];
    await refreshDirty(database, caller, { id: query.id, dataset_no });
    const order = { order_by: orderOf(query), descending: query.sort_by_desc };
    const { dataset_version } = query;
    const metadata = dataset_version === undefined ? query.metadata : { ...query.metadata, dataset_version };
    const rows = await listExperiments(read, caller.tenant_id, { ...query, ...order, metadata, dataset_no });
    const numbers = rows.flatMap((row) => row.dataset_no ?? []);
    const ids = datasets ?? (await datasetIds(read, numbers));
    const sessions: Session[] = [];
    for (const row of rows) {
      const dataset_id = row.dataset_no === null ? undefined : ids.get(row.dataset_no);
      const session = toSession(row, dataset_id ?? null, query.include_stats);
      const hasFacets = query.include_stats && query.facets;
      sessions.push(hasFacets ? { ...session, run_facets: await runFacets(read, row.experiment_no) } : session);
    }
    return sessions;
  },

  async read(caller: Caller, session_id: string, with_stats: boolean): Promise<Session> {
    const { read } = database;
    if (with_stats) await refreshDirty(database, caller, { id: [session_id] });
    return sessionRecord(read, await getExperiment(read, caller, session_id), with_stats);
  },

  async create(caller: Caller, body: SessionCreate, upsert: boolean): Promise<Session> {
    return database.write(async (tx) => {
      refuseExpiry(body, body.reference_dataset_id !== undefined);
      const name = body.name ?? `experiment-${newId()}`;
      const existing = await findExperimentByName(tx, caller.tenant_id, name);
      if (existing && !upsert) throw new ApiError("session_exists");
      if (existing) return sessionRecord(tx, existing, false);
      const created = await insertExperiment(tx, {
        experiment_id: body.id ?? newId(),
        tenant_id: caller.tenant_id,
        ...(await joinDataset(tx, caller, body.reference_dataset_id)),
        name,
        description: body.description ?? null,
        start_us: body.start_time ?? (await readNow(tx)) * 1000,
        end_us: body.end_time ?? null,
        extra: toJson(body.extra),
        trace_tier: body.trace_tier ?? "longlived",
        default_dataset_id: body.default_dataset_id ?? null,
        stats: NO_STATS,
      });
      // Another transaction has created it since.
      const other = !created && upsert ? await findExperimentByName(tx, caller.tenant_id, name) : undefined;
      const row = created ?? other;
      if (!row) throw new ApiError("session_exists");
      return sessionRecord(tx, row, false);
    });
  },

  async update(caller: Caller, session_id: string, body: SessionUpdate): Promise<Session> {
    return writeUnique(database, async (tx) => {
      const before = await lockSession(tx, caller, session_id);
      refuseExpiry(body, before.dataset_no !== null);
      const taken = body.name === undefined ? undefined : await findExperimentByName(tx, caller.tenant_id, body.name);
      if (taken && taken.experiment_no !== before.experiment_no) throw new ApiError("session_exists");
      const extra =
        body.extra === undefined ? before.extra : toJson({ ...parseJson<JsonObject>(before.extra), ...body.extra });
      await updateExperiment(tx, before.experiment_no, {
        name: body.name ?? before.name,
        description: body.description ?? before.description,
        end_us: body.end_time ?? before.end_us,
        default_dataset_id: body.default_dataset_id ?? before.default_dataset_id,
        trace_tier: body.trace_tier ?? before.trace_tier,
        extra,
      });
      return sessionRecord(tx, await getExperiment(tx, caller, session_id), false);
    });
  },

  async delete(caller: Caller, session_id: string): Promise<void> {
    await database.write(async (tx) => {
      await clearBaseline(tx, caller.tenant_id, session_id);
      // Ingestion locks the session, too: runs that are stored later would belong to no session.
      const { experiment_no } = await lockSession(tx, caller, session_id);
      await deleteExperiment(tx, experiment_no);
    });
  },
});

async function lockSession(tx: Tx, caller: Caller, session_id: string): Promise<ExperimentRow> {
  const { experiment_no } = await getExperiment(tx, caller, session_id);
  const locked = await lockExperiment(tx, experiment_no);
  if (!locked) throw new ApiError("session_not_found");
  return locked;
}

function refuseExpiry({ trace_tier }: SessionUpdate, is_experiment: boolean): void {
  if (is_experiment && trace_tier === "shortlived") throw new ApiError("experiment_expires");
}

/**
 * Returns the ids of the datasets of the query by their numbers; undefined without a filter on datasets, null to select experiments
 * without a dataset.
 */
async function selectedDatasets(
  read: Tx,
  { tenant_id }: Caller,
  { reference_dataset, reference_free }: SessionQuery,
): Promise<Map<number, string> | null | undefined> {
  if (reference_dataset === undefined) return reference_free === true ? null : undefined;
  const found = await Promise.all(reference_dataset.map((id) => findDataset(read, tenant_id, id)));
  return new Map(found.flatMap((dataset) => (dataset ? [[dataset.dataset_no, dataset.dataset_id]] : [])));
}

/** Assigns the next test run number of the dataset. */
async function joinDataset(
  tx: Tx,
  caller: Caller,
  dataset_id: string | undefined,
): Promise<Pick<ExperimentRow, "dataset_no" | "test_run_number">> {
  if (dataset_id === undefined) return { dataset_no: null, test_run_number: null };
  const { dataset_no } = await getDataset(tx, caller, dataset_id);
  const locked = await lockDataset(tx, dataset_no);
  if (!locked) throw new ApiError("dataset_not_found");
  await updateDataset(tx, dataset_no, { next_test_run: locked.next_test_run + 1 });
  return { dataset_no, test_run_number: locked.next_test_run };
}

async function sessionRecord(tx: Tx, row: ExperimentRow, with_stats: boolean): Promise<Session> {
  const ids = await datasetIds(tx, [row.dataset_no]);
  return toSession(row, ids.get(row.dataset_no) ?? null, with_stats);
}

/** Every other value of `sort_by`, except `feedback`, is the name of a statistic. */
const ORDERS: Partial<Record<SessionQuery["sort_by"], ExperimentOrder>> = {
  name: { column: "name" },
  start_time: { column: "start_us" },
  last_run_start_time: { stat: ["last_run_start_us"] },
  runs_count: { stat: ["run_count"] },
};

const orderOf = ({ sort_by, sort_by_feedback_key = "" }: SessionQuery): ExperimentOrder =>
  sort_by === "feedback"
    ? { stat: ["feedback_stats", sort_by_feedback_key, "avg"] }
    : (ORDERS[sort_by] ?? { stat: [sort_by] });

const MAX_RUNS = 10_000;
const MAX_VALUES = 100;

/** A value of the runs of a session, with the number of runs that have it and the filter that finds them. */
interface RunFacet extends JsonObject {
  key: "run_type" | "name" | "tag" | "metadata_key";
  value: string;
  n: number;
  query: string;
}

/** The most frequent types, names, tags and metadata keys of the newest runs of a session. */
async function runFacets(tx: Tx, experiment_no: number): Promise<RunFacet[]> {
  const runs = await newestRuns(tx, experiment_no, MAX_RUNS);
  const facetsOf = (
    key: RunFacet["key"],
    valuesOf: (run: (typeof runs)[number]) => readonly string[],
    filterOf: (text: string) => string,
  ) => {
    const counts = new Map<string, number>();
    for (const value of runs.flatMap((run) => [...new Set(valuesOf(run))]))
      counts.set(value, (counts.get(value) ?? 0) + 1);
    const sorted = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).slice(0, MAX_VALUES);
    return sorted.map(([value, n]): RunFacet => ({ key, value, n, query: filterOf(JSON.stringify(value)) }));
  };
  return [
    ...facetsOf(
      "run_type",
      ({ run_type }) => [run_type],
      (text) => `eq(run_type, ${text})`,
    ),
    ...facetsOf(
      "name",
      ({ name }) => (name ? [name] : []),
      (text) => `eq(name, ${text})`,
    ),
    ...facetsOf(
      "tag",
      ({ tags }) => parseJson<string[]>(tags) ?? [],
      (text) => `has(tags, ${text})`,
    ),
    ...facetsOf(
      "metadata_key",
      ({ metadata }) => Object.keys(parseJson<JsonObject>(metadata) ?? {}),
      (text) => `eq(metadata_key, ${text})`,
    ),
  ];
}
