import { ConfigError } from "../platform/errors.ts";

/** Numbers that systemd keeps for services which have a user only while they run, and that user namespaces of containers have. */
const DEFAULT = "61184-65519";

/**
 * Whom builds and instances run as where the service is root: numbers of which each deployment has one, or the name of a user for
 * all of them.
 *
 * @throws ConfigError
 */
export function readDeployUser(text = DEFAULT): { name: string } | { from: number; to: number } {
  const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(text) ?? [];
  if (from !== undefined && to !== undefined && Number(from) > 0 && Number(from) <= Number(to))
    return { from: Number(from), to: Number(to) };
  if (/^[a-z_][\w.-]*\$?$/i.test(text) && text !== "root") return { name: text };
  throw new ConfigError(
    `THREADMILL_DEPLOY_USER must be a range of user numbers above 0, like ${DEFAULT}, or the name of a user other than root, but is "${text}".`,
  );
}
