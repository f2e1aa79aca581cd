import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, relative } from "node:path";
import { DeployError } from "../../driver.ts";

/** Where the files of a fetch over ssh are. */
export interface SshFiles {
  /** Is there as long as the fetch is. */
  key: string;
  /** Of the deployment: the first key that its host has shown is the one that it has to show from then on. */
  known_hosts: string;
}

export interface SshRemote {
  /** The name by which the host's key is known. */
  host: string;
  /** Where to connect; undefined: where the name leads. */
  address: string | undefined;
}

const NO_KEY =
  "The repository is fetched over ssh, and the deployment brings no key for that: set its secret GIT_SSH_KEY to a private key that may read the repository, such as a deploy key, or deploy from the https address of the repository.";
const BAD_KEY =
  "The secret GIT_SSH_KEY is not a private key that ssh reads: it must be the text between -----BEGIN ... PRIVATE KEY----- and -----END ... PRIVATE KEY-----, both included.";

/**
 * What ssh is to be called with, from `folder`: the deployment's key and nothing of the service's user.
 *
 * @throws DeployError when the deployment has no key
 */
export async function sshCommand(
  key: string | undefined,
  { host, address }: SshRemote,
  files: SshFiles,
  folder: string,
): Promise<string> {
  if (key === undefined) throw new DeployError(NO_KEY);
  await mkdir(dirname(files.known_hosts), { recursive: true, mode: 0o700 });
  await writeFile(files.key, asFile(key), { mode: 0o600 });
  const options = {
    BatchMode: "yes",
    ConnectTimeout: "15",
    // Relative, as the rest of the path may hold what ssh or the shell reads as something else.
    IdentityFile: relative(folder, files.key),
    IdentitiesOnly: "yes",
    IdentityAgent: "none",
    PreferredAuthentications: "publickey",
    UserKnownHostsFile: relative(folder, files.known_hosts),
    GlobalKnownHostsFile: "/dev/null",
    StrictHostKeyChecking: "accept-new",
    UpdateHostKeys: "no",
    CheckHostIP: "no",
    HostKeyAlias: host,
    ...(address !== undefined && { HostName: address }),
  };
  // Neither the configuration of the user nor that of the system is read.
  return `ssh -F /dev/null ${Object.entries(options)
    .map(([name, value]) => `-o '${name}=${value}'`)
    .join(" ")}`;
}

export const removeKey = ({ key }: Pick<SshFiles, "key">): Promise<void> => rm(key, { force: true });

/** Line breaks get lost in forms, and become `\n` in variables. */
function asFile(key: string): string {
  const [, kind, text = ""] = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----(.*)-----END \1-----/s.exec(key) ?? [];
  const base64 = text.replaceAll("\\n", "").replaceAll(/\s/g, "");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) throw new DeployError(BAD_KEY);
  const lines = base64.match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${kind}-----\n${lines.join("\n")}\n-----END ${kind}-----\n`;
}
