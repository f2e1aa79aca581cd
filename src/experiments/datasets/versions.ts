import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMicroseconds, isoOfMilliseconds } from "../../platform/lib/times.ts";
import type {
  DatasetDiff,
  DatasetVersion,
  SplitUpdate,
  TagUpdate,
  VersionQuery,
} from "../contract/datasets/dataset-versions.ts";
import { type AsOf, LATEST } from "../contract/fields.ts";
import { getDataset } from "../lookups.ts";
import {
  datasetTags,
  newestVersionTime,
  putDatasetTag,
  versionsAt,
  versionTimes,
} from "../storage/dataset-versions.ts";
import { lockDataset } from "../storage/datasets.ts";
import { listSplits } from "../storage/examples.ts";
import type { DatasetTagRow } from "../storage/schema.ts";
import { changeMetadata } from "./example-metadata.ts";

export const datasetVersionOperations = (database: Database) => ({
  /** Lists versions with their tags. The newest version has the tag `latest`. */
  async list(caller: Caller, dataset_id: string, query: VersionQuery): Promise<DatasetVersion[]> {
    const { read } = database;
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    const times = await versionTimes(read, dataset_no, query);
    const toVersion = await versionSerializer(read, dataset_no);
    return times.map(({ at }) => toVersion(at));
  },

  async diff(
    caller: Caller,
    dataset_id: string,
    query: { from_version: AsOf; to_version: AsOf },
  ): Promise<DatasetDiff> {
    const { read } = database;
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    const examplesAt = async (as_of: AsOf) => {
      const at = await getVersionTime(read, dataset_no, as_of);
      return new Map((await versionsAt(read, dataset_no, at)).map(({ example_id, version }) => [example_id, version]));
    };
    const [from, to] = [await examplesAt(query.from_version), await examplesAt(query.to_version)];
    const [before, after] = [[...from.keys()], [...to.keys()]];
    return {
      examples_modified: before.filter((id) => to.has(id) && to.get(id) !== from.get(id)),
      examples_added: after.filter((id) => !from.has(id)),
      examples_removed: before.filter((id) => !to.has(id)),
    };
  },

  async read(caller: Caller, dataset_id: string, as_of: AsOf): Promise<DatasetVersion> {
    const { read } = database;
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    const at = await getVersionTime(read, dataset_no, as_of);
    return (await versionSerializer(read, dataset_no))(at);
  },

  async tags(caller: Caller, dataset_id: string): Promise<DatasetVersion[]> {
    const { read } = database;
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    const toVersion = await versionSerializer(read, dataset_no);
    const times = (await datasetTags(read, dataset_no)).map(({ version_at }) => Number(version_at));
    return [...new Set(times)].map(toVersion);
  },

  async updateTag(caller: Caller, dataset_id: string, { as_of, tag }: TagUpdate): Promise<DatasetVersion> {
    return writeUnique(database, async (tx) => {
      const { dataset_no } = await getDataset(tx, caller, dataset_id);
      const version_at = await getVersionTime(tx, dataset_no, as_of);
      await putDatasetTag(tx, { dataset_no, tag, version_at });
      return (await versionSerializer(tx, dataset_no))(version_at);
    });
  },

  async splits(caller: Caller, dataset_id: string, as_of: AsOf): Promise<string[]> {
    const { read } = database;
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    return listSplits(read, caller.tenant_id, dataset_no, await findVersionTime(read, dataset_no, as_of));
  },

  async updateSplits(caller: Caller, dataset_id: string, body: SplitUpdate): Promise<string[]> {
    const operation = body.remove ? "ARRAY_REMOVE" : "ARRAY_ADD";
    return database.write(async (tx) => {
      const { dataset_no } = await getDataset(tx, caller, dataset_id);
      await lockDataset(tx, dataset_no);
      const changes = [{ key: "dataset_split", operation, values: [body.split_name] } as const];
      const found = await changeMetadata(tx, dataset_no, body.examples, changes);
      if (!body.examples.every((id) => found.has(id))) throw new ApiError("example_not_found");
      return listSplits(tx, caller.tenant_id, dataset_no);
    });
  },
});

/**
 * Returns the time in milliseconds that selects the version of the examples; undefined selects the newest version.
 *
 * @throws ApiError when no version has the tag
 */
export async function findVersionTime(tx: Tx, dataset_no: number, as_of: AsOf): Promise<number | undefined> {
  if (as_of === LATEST) return undefined;
  if (typeof as_of === "number") return Math.floor(as_of / 1000);
  const found = (await datasetTags(tx, dataset_no)).find(({ tag }) => tag === as_of);
  if (found) return Number(found.version_at);
  throw new ApiError("dataset_version_not_found", { reason: `no version has the tag "${as_of}"` });
}

/** Returns the time in milliseconds of the newest version at or before `as_of`. */
async function getVersionTime(tx: Tx, dataset_no: number, as_of: AsOf): Promise<number> {
  const at = await newestVersionTime(tx, dataset_no, await findVersionTime(tx, dataset_no, as_of));
  if (at !== undefined) return at;
  const reason =
    typeof as_of === "number" ? `the dataset has no version at or before ${isoOfMicroseconds(as_of)}` : EMPTY;
  throw new ApiError("dataset_version_not_found", { reason });
}

const EMPTY = "the dataset has no versions, because no example was ever added";

async function versionSerializer(tx: Tx, dataset_no: number): Promise<(at: number) => DatasetVersion> {
  const latest = await newestVersionTime(tx, dataset_no);
  const ofTime = Map.groupBy(await datasetTags(tx, dataset_no), ({ version_at }: DatasetTagRow) => Number(version_at));
  return (at) => {
    const tags = [...(at === latest ? [LATEST] : []), ...(ofTime.get(at) ?? []).map(({ tag }) => tag)];
    return { tags: tags.length === 0 ? null : tags, as_of: isoOfMilliseconds(at) };
  };
}
