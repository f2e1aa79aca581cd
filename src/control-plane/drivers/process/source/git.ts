import { chown, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import {
  type Address,
  addressOfHost,
  isPublicAddress,
  type Lookup,
} from "../../../../platform/lib/safe-fetch/addresses.ts";
import { urlRefusal } from "../../../../platform/lib/safe-fetch/safe-fetch.ts";
import { type BuildIo, type BuildSpec, DeployError } from "../../driver.ts";
import { type Command, outputOf, runCommand } from "../command.ts";
import { chownTree, removeTree } from "../system-users.ts";

export interface GitRules {
  /** Allowed protocols, a subset of `https`, `http`, `ssh` and `file`. */
  protocols: readonly string[];
  /** Hosts that are allowed although they are not on the public internet, or use plain http. */
  hosts: readonly string[];
  lookup: Lookup;
}

type GitSource = Extract<BuildSpec["source"], { kind: "git" }>;

interface Remote {
  url: string;
  protocol: string;
  host: string;
  port: string;
  /** Checked addresses to which git must connect, because the name could resolve differently later. If undefined, any is allowed. */
  addresses: readonly Address[] | undefined;
}

/**
 * Fetches a commit of a repository without the history, and returns the SHA. git receives no environment, configuration, key or password
 * of the service's user, and does not prompt.
 *
 * @throws DeployError when the URL or ref is invalid or not allowed, the ssh key is missing or invalid, or git fails
 */
export async function checkOut(
  { url, ref, ssh_key }: GitSource,
  folder: string,
  ssh_files: SshFiles,
  rules: GitRules,
  base: Pick<Command, "env" | "timeout_ms" | "user" | "onStart">,
  io: BuildIo,
): Promise<string> {
  const remote = await remoteOf(url, rules);
  const refspec = refOf(ref);
  await mkdir(folder, { recursive: true });
  const GIT_SSH_COMMAND = remote.protocol === "ssh" ? await sshCommand(ssh_key, remote, ssh_files, folder) : "false";
  const env = { ...base.env, ...gitEnv(remote), GIT_SSH_COMMAND };
  // For ssh and file, git runs as the service's user: ssh needs a passwd entry, and git rejects local repositories of other users.
  const user = remote.protocol.startsWith("http") ? base.user : undefined;
  if (user) await chown(folder, user.uid, user.gid);
  const git = (...args: string[]): Command => ({
    ...base,
    name: `git ${args[0]}`,
    file: "git",
    args,
    cwd: folder,
    env,
    user,
  });
  try {
    await runCommand(git("init", "--quiet", "--template="), io);
    await runCommand(git("fetch", "--quiet", "--depth=1", "--no-tags", "--", remote.url, refspec), io);
  } finally {
    await rm(ssh_files.key, { force: true });
  }
  await runCommand(git("checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"), io);
  const sha = await outputOf(git("rev-parse", "HEAD"));
  // The user of the deployment, whose instances may be running, owns the folder while git runs as this user.
  await removeTree(join(folder, ".git"));
  if (base.user && !user) await chownTree(folder, base.user);
  return sha;
}

/** @throws DeployError when the URL is invalid or not allowed */
async function remoteOf(text: string, rules: GitRules): Promise<Remote> {
  const url = parse(text);
  const protocol = url.protocol.slice(0, -1);
  if (!rules.protocols.includes(protocol))
    throw new DeployError(`The source cannot be fetched over ${protocol}, only over ${rules.protocols.join(" or ")}.`);
  const remote = { url: url.href, protocol, host: url.hostname, port: url.port, addresses: undefined };
  if (protocol === "file") return remote;
  if (url.password !== "" || (protocol !== "ssh" && url.username !== ""))
    throw new DeployError(
      `The repository URL must not contain a ${protocol === "ssh" ? "password" : "user name or a password"}.`,
    );
  const host = url.hostname;
  // The URL parser accepts invalid host names for ssh://, and git passes the host name to a shell.
  if (!/^(\[[\da-f:.]+\]|[\w.][\w.-]*)$/i.test(host))
    throw new DeployError("The repository URL has no valid host name.");
  if (rules.hosts.includes(host)) return remote;
  const asHttps = protocol === "ssh" ? `https://${host}/` : url.href;
  const refusal = urlRefusal(asHttps, { allow_loopback: false });
  if (refusal !== undefined) throw new DeployError(`The repository cannot be fetched. ${refusal}`);
  return { ...remote, addresses: await publicAddressesOf(host, rules.lookup) };
}

/** Also accepts `git@host:path`, the short form of `ssh://git@host/path`. */
function parse(text: string): URL {
  const [, user, host, path] = /^([\w.-]+)@([\w.-]+):([^/].*)$/.exec(text) ?? [];
  const url = host === undefined ? text : `ssh://${user}@${host}/${path}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: addresses must not contain control characters
  if (!URL.canParse(url) || /[\s\u0000-\u001f]/.test(url))
    throw new DeployError("The repository URL must be a complete URL, such as https://example.com/team/agent.git.");
  return new URL(url);
}

async function publicAddressesOf(host: string, lookup: Lookup): Promise<readonly Address[]> {
  const literal = addressOfHost(host);
  const found = literal === undefined ? await lookup(host).catch(() => []) : [{ address: literal, family: 0 }];
  if (found.length === 0)
    throw new DeployError(`The host name ${host} of the repository URL cannot be resolved: check the URL.`);
  if (!found.every(({ address }) => isPublicAddress(address)))
    throw new DeployError(
      `The repository cannot be fetched: the host ${host} must be on the public internet, or be listed in THREADMILL_DEPLOY_GIT_HOSTS.`,
    );
  return found;
}

/** @returns `ref`, which can be a branch, tag or full commit SHA; `HEAD` (the default branch) if `ref` is empty or undefined */
function refOf(ref: string | undefined): string {
  if (ref === undefined || ref === "") return "HEAD";
  if (/^[\w.@/+-]+$/.test(ref) && !ref.startsWith("-") && !ref.includes("..")) return ref;
  throw new DeployError(
    `The ref ${JSON.stringify(ref)} is not supported: use a branch, a tag or a full commit SHA. It must not begin with "-" or contain "..". Its only allowed characters are letters, digits and . _ @ / + -`,
  );
}

function gitEnv({ protocol, host, port, addresses }: Remote): Record<string, string> {
  const config: [string, string][] = [
    // A redirect could lead to an address that is not allowed.
    ["http.followRedirects", "false"],
    ["core.symlinks", "false"],
    ["core.hooksPath", "/dev/null"],
    ["protocol.version", "2"],
  ];
  if (protocol === "https" && addresses !== undefined) {
    const listed = addresses.map(({ address, family }) => (family === 6 ? `[${address}]` : address));
    config.push(["http.curloptResolve", `${host}:${port || "443"}:${listed.join(",")}`]);
  }
  const numbered = config.flatMap(([name, value], n) => [
    [`GIT_CONFIG_KEY_${n}`, name],
    [`GIT_CONFIG_VALUE_${n}`, value],
  ]);
  return {
    ...Object.fromEntries(numbered),
    GIT_CONFIG_COUNT: String(config.length),
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ALLOW_PROTOCOL: protocol,
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "true",
    GIT_LFS_SKIP_SMUDGE: "1",
    // Otherwise Kerberos would use the tickets of the service's user, which it finds even without HOME.
    KRB5CCNAME: "FILE:/dev/null",
  };
}

/** Paths of the files for a fetch over ssh. */
interface SshFiles {
  /** Private key file, which exists only during the fetch. */
  key: string;
  /** Known hosts file of the deployment. The first key of a host is trusted, and later connections require the same key. */
  known_hosts: string;
}

const NO_KEY =
  "The repository URL uses ssh, but the deployment has no ssh key. Set the secret GIT_SSH_KEY to a private key with read access to the repository (for example a deploy key), or use the https URL of the repository.";
const BAD_KEY =
  "The secret GIT_SSH_KEY is not a valid private key: set the secret to the complete key, including the lines -----BEGIN ... PRIVATE KEY----- and -----END ... PRIVATE KEY-----.";

/**
 * Returns the ssh command for git in `folder`. It uses the deployment's key and ignores the configuration of the service's user.
 *
 * @throws DeployError when the deployment has no valid key
 */
async function sshCommand(
  key: string | undefined,
  { host, addresses }: Remote,
  files: SshFiles,
  folder: string,
): Promise<string> {
  if (key === undefined) throw new DeployError(NO_KEY);
  const [address] = addresses ?? [];
  await mkdir(dirname(files.known_hosts), { recursive: true, mode: 0o700 });
  await writeFile(files.key, asFile(key), { mode: 0o600 });
  const options = {
    BatchMode: "yes",
    ConnectTimeout: "15",
    // Relative paths, because absolute paths can contain special characters of ssh or the shell.
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
    ...(address && { HostName: address.address }),
  };
  // -F /dev/null: ssh reads neither the configuration of the user nor that of the system.
  return `ssh -F /dev/null ${Object.entries(options)
    .map(([name, value]) => `-o '${name}=${value}'`)
    .join(" ")}`;
}

/** Restores the line breaks of a key: forms remove them, and environment variables contain them as `\n`. */
function asFile(key: string): string {
  const [, kind, text = ""] = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----(.*)-----END \1-----/s.exec(key) ?? [];
  const base64 = text.replaceAll("\\n", "").replaceAll(/\s/g, "");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) throw new DeployError(BAD_KEY);
  const lines = base64.match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${kind}-----\n${lines.join("\n")}\n-----END ${kind}-----\n`;
}
