import type { Tx } from "../../platform/database/database.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import { parseJson } from "../serialization/records.ts";
import { newestRuns } from "../storage/traces/traces.ts";

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
export async function runFacets(tx: Tx, experiment_no: number): Promise<RunFacet[]> {
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
