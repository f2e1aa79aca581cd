import { join } from "node:path";
import { dataRoot } from "../deployment-data.ts";

/** The files and folders of the process driver, below the folder of the control plane. */
export interface Folders {
  /** Finished builds: `<deployment_id>/<hash of content>`. */
  builds: string;
  /** Unfinished builds, each in a folder that names the process of the service. */
  workspaces: string;
  /** Contains a folder for each deployment. */
  npm_cache: string;
  /** The output of instances, and the positions up to which it is stored. */
  logs: string;
  /** A file that running control planes touch, and instances watch. */
  heartbeat: string;
  /** The ssh host keys of repositories: a file for each deployment. */
  known_hosts: string;
  /** Contains a record for each instance. */
  run: string;
  data: string;
}

export const foldersIn = (root: string): Folders => ({
  builds: join(root, "builds"),
  workspaces: join(root, "making"),
  npm_cache: join(root, "npm-cache"),
  logs: join(root, "logs"),
  heartbeat: join(root, "heartbeat"),
  known_hosts: join(root, "known-hosts"),
  run: join(root, "run"),
  data: dataRoot(root),
});

export const buildFolder = ({ builds }: Folders, deployment_id: string, artifact: string): string =>
  join(builds, deployment_id, artifact);

export const npmCache = ({ npm_cache }: Folders, deployment_id: string): string => join(npm_cache, deployment_id);

/** The output of an instance. The suffix `.offset` names the file with the position up to which it is stored. */
export const logFile = ({ logs }: Folders, instance_id: string): string => join(logs, `${instance_id}.log`);

export const knownHostsFile = ({ known_hosts }: Folders, deployment_id: string): string =>
  join(known_hosts, deployment_id);

export const recordFile = ({ run }: Folders, instance_id: string): string => join(run, `${instance_id}.json`);
