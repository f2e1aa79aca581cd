import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { RunStatsQuery } from "../contract/runs.ts";
import type { RunQueryV2 } from "../contract/v2/runs.ts";
import { readFilters } from "../filter/parse.ts";
import { getDataset, getExperiment } from "../lookups.ts";
import { experimentsById, experimentsOfDataset } from "../storage/experiments.ts";
import type { RunSearch } from "../storage/runs.ts";
import type { TraceSearch } from "../storage/traces/trace-search.ts";

/** A search of uploaded and traced runs. */
export interface AnyRunSearch {
  /** Undefined when no uploaded run can match. */
  uploaded: RunSearch | undefined;
  /** Undefined when no traced run can match. */
  traced: TraceSearch | undefined;
}

export async function toSearch(
  read: Tx,
  { tenant_id }: Pick<Caller, "tenant_id">,
  body: RunStatsQuery,
): Promise<AnyRunSearch> {
  const experiments = body.session && (await experimentsById(read, tenant_id, body.session));
  const search = {
    experiment_no: experiments?.map(({ experiment_no }) => experiment_no),
    id: body.id,
    example_id: body.reference_example,
    from_us: body.start_time,
    to_us: body.end_time,
    has_error: body.error,
    filters: readFilters([body.filter, body.search_filter], body.query),
  };
  // The JavaScript client requests root runs with `execution_order: 1`.
  return inBoth(search, { ...body, is_root: body.is_root ?? (body.execution_order === 1 ? true : undefined) });
}

type SearchV2 = Partial<Omit<RunQueryV2, "cursor" | "page_size" | "selects" | "sort_order">>;

/** Like {@link toSearch}, for version 2 of the API. */
export async function toSearchV2(read: Tx, caller: Caller, body: SearchV2): Promise<AnyRunSearch> {
  const { project_ids, reference_dataset_id } = body;
  if ((project_ids === undefined) === (reference_dataset_id === undefined))
    throw new ApiError("invalid_request", { reason: "Set exactly one of project_ids and reference_dataset_id." });
  const experiments = project_ids
    ? await Promise.all(project_ids.map((id) => getExperiment(read, caller, id)))
    : await experimentsOfDataset(read, (await getDataset(read, caller, reference_dataset_id as string)).dataset_no);
  const search = {
    experiment_no: experiments.map(({ experiment_no }) => experiment_no),
    id: body.ids,
    example_id: body.reference_examples,
    from_us: body.min_start_time,
    to_us: body.max_start_time,
    has_error: body.has_error,
    filters: readFilters([body.filter]),
  };
  return inBoth(search, { ...body, trace: body.trace_id, run_type: body.run_type?.toLowerCase() });
}

type TreeQuery = Pick<RunStatsQuery, "trace" | "parent_run" | "run_type" | "is_root" | "trace_filter" | "tree_filter">;

/** Applies a search to uploaded and traced runs. An uploaded run is the only run of its trace, and has the type `chain`. */
function inBoth(search: RunSearch, tree: TreeQuery): AnyRunSearch {
  const { trace, parent_run, run_type, is_root } = tree;
  const root_filters = readFilters([tree.trace_filter]);
  const tree_filters = readFilters([tree.tree_filter]);
  const mayBeUploaded = is_root !== false && parent_run === undefined && (run_type ?? "chain") === "chain";
  const uploaded = {
    ...search,
    id: trace === undefined ? search.id : (search.id ?? [trace]).filter((id) => id === trace),
    only_uploaded: true,
    filters: [...search.filters, ...root_filters, ...tree_filters],
  };
  const position = { trace_id: trace, parent_run_id: parent_run, run_type, is_root };
  return {
    uploaded: mayBeUploaded ? uploaded : undefined,
    traced: { ...search, ...position, root_filters, tree_filters },
  };
}
