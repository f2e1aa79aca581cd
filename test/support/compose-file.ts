import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadYaml } from "@kubernetes/client-node";

export const DEPLOY = join(import.meta.dirname, "../../deploy");

/** Files of YAML have any form. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every shape
export type Yaml = any;

/** deploy/compose.yaml with its merge keys (`<<`) applied, which are not part of YAML 1.2. */
export const readCompose = (): Yaml => merged(loadYaml(readFileSync(join(DEPLOY, "compose.yaml"), "utf8")));

function merged(value: Yaml): Yaml {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const { "<<": base, ...own } = value;
  return Object.fromEntries(Object.entries({ ...merged(base), ...own }).map(([key, item]) => [key, merged(item)]));
}
