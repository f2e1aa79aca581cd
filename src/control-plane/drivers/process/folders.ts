import { join } from "node:path";
import { dataRoot } from "../deployment-data.ts";

/** The files and folders of the process driver, below the folder of the control plane. */
export interface Folders {
  /** Finished builds: `<deployment_id>/<hash of the build inputs>`. */
  builds: string;
  /** Unfinished builds. The name of each folder identifies the service process. */
  workspaces: string;
  /** npm caches, one folder per deployment. */
  npm_cache: string;
  /** Virtual environments of Python graphs: `<deployment_id>/<key>`. */
  python_envs: string;
  /** Output files of instances, and the positions up to which the output has been stored in the database. */
  logs: string;
  /** Heartbeat file. Running control planes touch this file, and instances watch it. */
  heartbeat: string;
  /** ssh host keys of repositories, one file per deployment. */
  known_hosts: string;
  /** Instance records, one file per instance. */
  run: string;
  data: string;
}

export const foldersIn = (root: string): Folders => ({
  builds: join(root, "builds"),
  workspaces: join(root, "making"),
  npm_cache: join(root, "npm-cache"),
  python_envs: join(root, "python-envs"),
  logs: join(root, "logs"),
  heartbeat: join(root, "heartbeat"),
  known_hosts: join(root, "known-hosts"),
  run: join(root, "run"),
  data: dataRoot(root),
});

export const buildFolder = ({ builds }: Folders, deployment_id: string, artifact: string): string =>
  join(builds, deployment_id, artifact);

export const npmCache = ({ npm_cache }: Folders, deployment_id: string): string => join(npm_cache, deployment_id);

export const pythonEnvironments = ({ python_envs }: Folders, deployment_id: string): string =>
  join(python_envs, deployment_id);

/** Output file of an instance. The file with the suffix `.offset` contains the number of bytes already stored in the database. */
export const logFile = ({ logs }: Folders, instance_id: string): string => join(logs, `${instance_id}.log`);

export const knownHostsFile = ({ known_hosts }: Folders, deployment_id: string): string =>
  join(known_hosts, deployment_id);

export const recordFile = ({ run }: Folders, instance_id: string): string => join(run, `${instance_id}.json`);
