import { delimiter, dirname } from "node:path";
import type { Env } from "./values.ts";

/** Where programs are found, and how people of this machine write. Nothing of it is a secret. */
const PASSED_ON = ["LANG", "LC_ALL", "TZ", "TMPDIR"];

/** What a program needs of the environment of this process, to be given to others. The Node that runs this comes first. */
export function readSystemEnv(env: Env): Record<string, string> {
  const found = PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name] as string]]));
  return { ...Object.fromEntries(found), PATH: [dirname(process.execPath), env.PATH ?? ""].join(delimiter) };
}
