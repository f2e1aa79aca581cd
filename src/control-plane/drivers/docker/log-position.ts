import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { LogPosition } from "./log-lines.ts";

/** How far the log of an instance has been told, across restarts of the service; of another container it says nothing. */
export interface LogPositionFile {
  read(): Promise<LogPosition>;
  write(position: LogPosition): Promise<void>;
}

const fileOf = (folder: string, instance_id: string) => join(folder, `${instance_id}.json`);

export function positionFile(folder: string, instance_id: string, container: string): LogPositionFile {
  const file = fileOf(folder, instance_id);
  return {
    async read() {
      const text = await readFile(file, "utf8").catch(() => "{}");
      const { position, ...of } = JSON.parse(text) as { container?: string; position?: LogPosition };
      return of.container === container && position ? position : {};
    },
    async write(position) {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(`${file}.new`, JSON.stringify({ container, position }), { mode: 0o600 });
      await rename(`${file}.new`, file);
    },
  };
}

export const removePosition = (folder: string, instance_id: string): Promise<void> =>
  rm(fileOf(folder, instance_id), { force: true });
