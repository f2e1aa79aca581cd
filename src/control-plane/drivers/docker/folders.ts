import { join } from "node:path";
import { dataIn } from "../data-folder.ts";

/** Where the Docker driver keeps what, below the folder of the control plane. */
export interface Folders {
  /** Which service this is, once it has started a container. */
  service_id: string;
  /** How far the logs of containers have been told. */
  positions: string;
  /** Images that were pulled for deployments, and for which. */
  pulled: string;
  /**
   * The data folders of deployments. Where the service is root, everybody may write to them, for images run as whom they say; the
   * folder of the driver is closed to all but root. Elsewhere they are shared with the process driver, as all is one user.
   */
  data: string;
  /** Where they were before. */
  earlier_data: string;
}

export const foldersIn = (control_dir: string): Folders => ({
  service_id: join(control_dir, "docker", "service-id"),
  positions: join(control_dir, "docker", "positions"),
  pulled: join(control_dir, "docker", "pulled"),
  data: process.getuid?.() === 0 ? join(control_dir, "docker", "data") : dataIn(control_dir),
  earlier_data: dataIn(control_dir),
});
