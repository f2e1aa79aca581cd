import { join } from "node:path";

/** Where the data folders of deployments are, below the folder of the control plane. */
export const dataIn = (control_dir: string): string => join(control_dir, "data");

/** A deployment has one data folder over all its revisions, whichever driver runs them. */
export const dataFolder = ({ data }: { data: string }, deployment_id: string): string => join(data, deployment_id);
