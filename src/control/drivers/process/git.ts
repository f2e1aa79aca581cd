import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { addressOfHost, isPublicAddress, type Lookup } from "../../../lib/safe-fetch/addresses.ts";
import { refusalOf } from "../../../lib/safe-fetch/rules.ts";
import { type BuildIo, type BuildOrder, DeployError } from "../../driver.ts";
import { type Command, runCommand } from "./command.ts";
import { outputOf } from "./command-output.ts";

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
  /** For curl: the addresses that were looked at, so that the name cannot lead elsewhere meanwhile. */
  resolved: string | undefined;
}

/**
 * Fetches one commit of a repository, without its history, and returns its SHA. Nothing of the service's environment or
 * configuration reaches git, and it asks nobody for a password.
 *
 * @throws DeployError when the address is not one to fetch from, or git fails
 */
export async function checkOut(
  { url, ref, token }: GitSource,
  folder: string,
  rules: GitRules,
  base: Pick<Command, "env" | "timeout_ms" | "user" | "onStart">,
  io: BuildIo,
): Promise<string> {
  const remote = await remoteOf(url, rules);
  const refspec = refOf(ref);
  const env = { ...base.env, ...gitEnv(remote, token) };
  await mkdir(folder, { recursive: true });
  const git = (...args: string[]): Command => ({
    ...base,
    name: `git ${args[0]}`,
    file: "git",
    args,
    cwd: folder,
    env,
  });
  await runCommand(git("init", "--quiet", "--template="), io);
  await runCommand(git("fetch", "--quiet", "--depth=1", "--no-tags", "--", remote.url, refspec), io);
  await runCommand(git("checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"), io);
  const sha = await outputOf(git("rev-parse", "HEAD"));
  await rm(join(folder, ".git"), { recursive: true, force: true });
  return sha;
}

/** @throws DeployError in a sentence for whoever named the address */
async function remoteOf(text: string, rules: GitRules): Promise<Remote> {
  const url = parse(text);
  const protocol = url.protocol.slice(0, -1);
  if (!rules.protocols.includes(protocol))
    throw new DeployError(`Source is not fetched over ${protocol} here, but over ${rules.protocols.join(", ")}.`);
  if (protocol === "file") return { url: url.href, protocol, resolved: undefined };
  if (url.password !== "" || (protocol !== "ssh" && url.username !== ""))
    throw new DeployError("The address of the repository must not hold a user name or a password.");
  const host = url.hostname;
  if (host === "" || host.startsWith("-")) throw new DeployError("The address of the repository names no host.");
  if (rules.hosts.includes(host)) return { url: url.href, protocol, resolved: undefined };
  const asHttps = protocol === "ssh" ? `https://${host}/` : url.href;
  const refusal = refusalOf(asHttps, { allow_loopback: false });
  if (refusal !== undefined) throw new DeployError(`The repository cannot be fetched. ${refusal}`);
  const addresses = await publicAddressesOf(host, rules.lookup);
  return { url: url.href, protocol, resolved: `${host}:${url.port || "443"}:${addresses.join(",")}` };
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

async function publicAddressesOf(host: string, lookup: Lookup): Promise<string[]> {
  const literal = addressOfHost(host);
  const found = literal === undefined ? await lookup(host).catch(() => []) : [{ address: literal, family: 0 }];
  if (found.length === 0) throw new DeployError(`The host of the repository, ${host}, is not known.`);
  if (!found.every(({ address }) => isPublicAddress(address)))
    throw new DeployError("The repository cannot be fetched. The URL must name a host on the public internet.");
  return found.map(({ address, family }) => (family === 6 ? `[${address}]` : address));
}

/** A branch, a tag or a whole commit; without one what the repository shows first. */
function refOf(ref: string | undefined): string {
  if (ref === undefined || ref === "") return "HEAD";
  if (/^[\w.@/+-]+$/.test(ref) && !ref.startsWith("-") && !ref.includes("..")) return ref;
  throw new DeployError(`The ref ${JSON.stringify(ref)} is not the name of a branch, a tag or a commit.`);
}

function gitEnv({ url, protocol, resolved }: Remote, token: string | undefined): Record<string, string> {
  const config: [string, string][] = [
    // A redirect could lead to where this address may not.
    ["http.followRedirects", "false"],
    ["core.symlinks", "false"],
    ["core.hooksPath", "/dev/null"],
    ["protocol.version", "2"],
  ];
  if (protocol.startsWith("http") && resolved !== undefined) config.push(["http.curloptResolve", resolved]);
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
    GIT_SSH_COMMAND: "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o ConnectTimeout=15",
  };
}
