import { pythonEnvironment } from "./python.ts";

/** Makes the virtual environment before the workers, each of which would make its own. */
export default async function setup(): Promise<void> {
  await pythonEnvironment();
}
