import { join } from "node:path";
import { dataIn } from "../data-folder.ts";

/** Where the process driver keeps what, all below one folder of the data folder. */
export interface Folders {
  /** Finished builds: `<deployment_id>/<hash of content>`. */
  builds: string;
  /** Builds in the making, each in a folder that names its process. */
  making: string;
  /** What npm has downloaded, for the next build: a folder for each deployment. */
  npm_cache: string;
  /** What instances write, and how much of it has been told. */
  logs: string;
  /** What control planes touch as long as they are there; instances watch it. */
  heartbeat: string;
  /** The keys of hosts that repositories were fetched from over ssh: a file of each deployment. */
  known_hosts: string;
  /** A record of each instance that was started. */
  run: string;
  /** The data folders of deployments. */
  data: string;
}

export const foldersIn = (root: string): Folders => ({
  builds: join(root, "builds"),
  making: join(root, "making"),
  npm_cache: join(root, "npm-cache"),
  logs: join(root, "logs"),
  heartbeat: join(root, "heartbeat"),
  known_hosts: join(root, "known-hosts"),
  run: join(root, "run"),
  data: dataIn(root),
});

export const buildFolder = ({ builds }: Folders, deployment_id: string, artifact: string): string =>
  join(builds, deployment_id, artifact);

export const npmCache = ({ npm_cache }: Folders, deployment_id: string): string => join(npm_cache, deployment_id);

/** Where an instance writes, and with `.offset` behind it, how far that has been told. */
export const logFile = ({ logs }: Folders, instance_id: string): string => join(logs, `${instance_id}.log`);

export const knownHostsFile = ({ known_hosts }: Folders, deployment_id: string): string =>
  join(known_hosts, deployment_id);

export const recordFile = ({ run }: Folders, instance_id: string): string => join(run, `${instance_id}.json`);
