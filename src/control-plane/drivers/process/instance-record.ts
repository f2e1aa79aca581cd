import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { replaceFile } from "../../../platform/lib/replace-file.ts";
import type { InstanceRef } from "../driver.ts";
import { type Folders, recordFile } from "./folders.ts";
import { findByCommand, isAlive, type ProcessIdentity } from "./process-identity.ts";

/** Record of an instance in a file, which survives restarts of the service. */
export interface InstanceRecord extends Omit<InstanceRef, "handle"> {
  /** Undefined until the start is confirmed. Until then, the process list shows whether the instance is running. */
  process: ProcessIdentity | undefined;
  /** How the process ended, if the service has observed it. */
  ended?: { status: number | null; signal: string | null };
}

/** Process title of an instance. */
export const titleOf = ({ instance_id }: Pick<InstanceRef, "instance_id">): string => `threadmill-${instance_id}`;

export const handleOf = ({ pid, started }: ProcessIdentity): string => `${pid} ${started}`;

export function processOf(handle: string): ProcessIdentity | undefined {
  const [, pid, started = ""] = /^(\d+) (.+)$/.exec(handle) ?? [];
  return pid === undefined ? undefined : { pid: Number(pid), started };
}

export async function writeRecord(folders: Folders, record: InstanceRecord): Promise<void> {
  const file = recordFile(folders, record.instance_id);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await replaceFile(file, JSON.stringify(record));
}

/** Undefined also for a record that is cut off, as after a power failure. */
export async function readRecord(folders: Folders, instance_id: string): Promise<InstanceRecord | undefined> {
  const text = await readFile(recordFile(folders, instance_id), "utf8").catch(() => "");
  try {
    return JSON.parse(text) as InstanceRecord;
  } catch {
    return undefined;
  }
}

export async function listRecords(folders: Folders): Promise<InstanceRecord[]> {
  const names = await readdir(folders.run).catch(() => []);
  const ids = names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
  const records = await Promise.all(ids.map((instance_id) => readRecord(folders, instance_id)));
  return records.filter((record) => record !== undefined);
}

export const removeRecord = (folders: Folders, instance_id: string): Promise<void> =>
  rm(recordFile(folders, instance_id), { force: true });

export async function runningProcess(record: InstanceRecord): Promise<ProcessIdentity | undefined> {
  if (record.process === undefined) return findByCommand(titleOf(record));
  return (await isAlive(record.process)) ? record.process : undefined;
}
