import { chown, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type Address,
  addressOfHost,
  isPublicAddress,
  type Lookup,
} from "../../../../platform/lib/safe-fetch/addresses.ts";
import { refusalOf } from "../../../../platform/lib/safe-fetch/rules.ts";
import { type BuildIo, type BuildOrder, DeployError } from "../../driver.ts";
import { type Command, runCommand } from "../command.ts";
import { outputOf } from "../command-output.ts";
import { give } from "../system-users.ts";
import { removeKey, type SshFiles, sshCommand } from "./git-ssh.ts";

/** Where source may be fetched from. */
export interface GitRules {
  /** Of `https`, `http`, `ssh` and `file`. */
  protocols: readonly string[];
  /** Hosts that may be asked although they are not on the public internet, and over plain http. */
  hosts: readonly string[];
  lookup: Lookup;
}

type GitSource = Extract<BuildOrder["source"], { kind: "git" }>;

interface Remote {
  url: string;
  protocol: string;
  host: string;
  port: string;
  /** The addresses that were looked at, so that the name cannot lead elsewhere meanwhile. Undefined: it may lead anywhere. */
  addresses: readonly Address[] | undefined;
}

/**
 * Fetches one commit of a repository, without its history, and returns its SHA. Nothing of the service's environment or
 * configuration, no key and no password of its user reach git, and git does not prompt for one.
 *
 * @throws DeployError when the address is not one to fetch from, or git fails
 */
export async function checkOut(
  { url, ref, token, ssh_key }: GitSource,
  folder: string,
  ssh_files: SshFiles,
  rules: GitRules,
  base: Pick<Command, "env" | "timeout_ms" | "user" | "onStart">,
  io: BuildIo,
): Promise<string> {
  const remote = await remoteOf(url, rules);
  const refspec = refOf(ref);
  await mkdir(folder, { recursive: true });
  const GIT_SSH_COMMAND =
    remote.protocol === "ssh"
      ? await sshCommand(ssh_key, { ...remote, address: remote.addresses?.[0]?.address }, ssh_files, folder)
      : "false";
  const env = { ...base.env, ...gitEnv(remote, token), GIT_SSH_COMMAND };
  // ssh runs for no user that the system has no name of, and git reads no repository of this machine that is another user's.
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
    await removeKey(ssh_files);
  }
  await runCommand(git("checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"), io);
  const sha = await outputOf(git("rev-parse", "HEAD"));
  await rm(join(folder, ".git"), { recursive: true, force: true });
  if (base.user && !user) await give(folder, base.user);
  return sha;
}

/** @throws DeployError in a sentence for whoever named the address */
async function remoteOf(text: string, rules: GitRules): Promise<Remote> {
  const url = parse(text);
  const protocol = url.protocol.slice(0, -1);
  if (!rules.protocols.includes(protocol))
    throw new DeployError(`Source is not fetched over ${protocol} here, but over ${rules.protocols.join(", ")}.`);
  const remote = { url: url.href, protocol, host: url.hostname, port: url.port, addresses: undefined };
  if (protocol === "file") return remote;
  if (url.password !== "" || (protocol !== "ssh" && url.username !== ""))
    throw new DeployError("The address of the repository must not hold a user name or a password.");
  const host = url.hostname;
  // Of ssh:// the URL parser takes what no host name has, and a shell gets to see it.
  if (!/^(\[[\da-f:.]+\]|[\w.][\w.-]*)$/i.test(host))
    throw new DeployError("The address of the repository names no host.");
  if (rules.hosts.includes(host)) return remote;
  const asHttps = protocol === "ssh" ? `https://${host}/` : url.href;
  const refusal = refusalOf(asHttps, { allow_loopback: false });
  if (refusal !== undefined) throw new DeployError(`The repository cannot be fetched. ${refusal}`);
  return { ...remote, addresses: await publicAddressesOf(host, rules.lookup) };
}

/** `git@host:path` is what people copy for `ssh://git@host/path`. */
function parse(text: string): URL {
  const [, user, host, path] = /^([\w.-]+)@([\w.-]+):([^/].*)$/.exec(text) ?? [];
  const url = host === undefined ? text : `ssh://${user}@${host}/${path}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them belongs into an address
  if (!URL.canParse(url) || /[\s\u0000-\u001f]/.test(url))
    throw new DeployError(
      "The address of the repository must be a whole one, like https://example.com/team/agent.git.",
    );
  return new URL(url);
}

async function publicAddressesOf(host: string, lookup: Lookup): Promise<readonly Address[]> {
  const literal = addressOfHost(host);
  const found = literal === undefined ? await lookup(host).catch(() => []) : [{ address: literal, family: 0 }];
  if (found.length === 0) throw new DeployError(`The host of the repository, ${host}, is not known.`);
  if (!found.every(({ address }) => isPublicAddress(address)))
    throw new DeployError("The repository cannot be fetched. The URL must name a host on the public internet.");
  return found;
}

/** A branch, a tag or a whole commit; without one what the repository shows first. */
function refOf(ref: string | undefined): string {
  if (ref === undefined || ref === "") return "HEAD";
  if (/^[\w.@/+-]+$/.test(ref) && !ref.startsWith("-") && !ref.includes("..")) return ref;
  throw new DeployError(`The ref ${JSON.stringify(ref)} is not the name of a branch, a tag or a commit.`);
}

function gitEnv({ url, protocol, host, port, addresses }: Remote, token: string | undefined): Record<string, string> {
  const config: [string, string][] = [
    // A redirect could lead to where this address may not.
    ["http.followRedirects", "false"],
    ["core.symlinks", "false"],
    ["core.hooksPath", "/dev/null"],
    ["protocol.version", "2"],
  ];
  if (protocol === "https" && addresses !== undefined) {
    const listed = addresses.map(({ address, family }) => (family === 6 ? `[${address}]` : address));
    config.push(["http.curloptResolve", `${host}:${port || "443"}:${listed.join(",")}`]);
  }
  if (token !== undefined && protocol === "https") {
    const basic = Buffer.from(`x-access-token:${token}`).toString("base64");
    config.push([`http.${new URL(url).origin}/.extraHeader`, `Authorization: Basic ${basic}`]);
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
    // Tickets of the service's user are found without a HOME.
    KRB5CCNAME: "FILE:/dev/null",
  };
}
