import { delimiter, dirname } from "node:path";
import type { Env } from "./values.ts";

/** Language, time zone, temporary files, and which certificates are trusted: what is not secret and programs cannot work without. */
const PASSED_ON = ["LANG", "LC_ALL", "TZ", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/** What a program needs of the environment of this process, to be given to others. The Node that runs this comes first. */
export function readSystemEnv(env: Env): Record<string, string> {
  const found = PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name] as string]]));
  return { ...Object.fromEntries(found), PATH: [dirname(process.execPath), env.PATH ?? ""].join(delimiter) };
}
