import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Deployment, Revision } from "../../src/control-plane/contract/records.ts";
import { checkOut } from "../../src/control-plane/drivers/process/source/git.ts";
import { PROJECT, temporaryFolder, writeFiles } from "../control/deployed-project.ts";
import { openProcessWorld, type ProcessWorld } from "../control/process-world.ts";
import { type DeployingServer, startDeployingServer } from "../support/deploying-server.ts";
import { freePort } from "../support/process.ts";
import { until } from "../support/until.ts";

/** Finding 11 of the security review: git over ssh resolved the name again, and had the keys of the service's user. */

const KEY = keyPair("deployment");
/** Before a recording one comes before it in the PATH. */
const SSH = execFileSync("sh", ["-c", "command -v ssh"], { encoding: "utf8" }).trim();

describe("a repository that is fetched over ssh", () => {
  const repository = repositoryOf(PROJECT);
  const { folder, recorded } = recorder();
  const home = hostileHome();
  let server: DeployingServer;
  beforeAll(async () => {
    server = await startDeployingServer({
      env: {
        API_KEYS: "a-key-of-the-operator-0123456789abcdef",
        PATH: [folder, process.env.PATH].join(delimiter),
        HOME: home,
        SSH_AUTH_SOCK: join(home, "agent.sock"),
        THREADMILL_DEPLOY_GIT_HOSTS: "git.test",
      },
    });
  });
  afterAll(() => server.stop());

  const deploy = async (name: string, secrets: { name: string; value: string }[]) => {
    const answer = await server.call("POST", "/v2/deployments", {
      name,
      source: "github",
      source_config: { repo_url: `ssh://git@git.test${repository}`, install_command: "env" },
      source_revision_config: { langgraph_config_path: "langgraph.json" },
      secrets,
    });
    const { id, latest_revision_id } = (await answer.json()) as Deployment;
    return until("it has come to its end", async () => {
      const path = `/v2/deployments/${id}/revisions/${latest_revision_id}`;
      const revision = (await (await server.call("GET", path)).json()) as Revision;
      return /DEPLOYED|FAILED/.test(revision.status) ? { ...revision, id } : undefined;
    });
  };

  it("is refused without a key of the deployment, with the fix", async () => {
    const { status, status_message } = await deploy("without", []);
    expect([status, status_message]).toEqual(["BUILD_FAILED", expect.stringContaining("Set the secret GIT_SSH_KEY")]);
    expect(existsSync(join(folder, "arguments"))).toBe(false);
  });

  it("is refused with an invalid key, which is not repeated", async () => {
    const { status_message } = await deploy("broken", [{ name: "GIT_SSH_KEY", value: "hunter2 $(touch /tmp/evil)" }]);
    expect(status_message).toContain("GIT_SSH_KEY is not a valid private key");
    expect(status_message).not.toContain("hunter2");
  });

  it("is read with that key, and with nothing of the service's user", async () => {
    const pasted = KEY.private.replaceAll("\n", "");
    const { status, status_message, ...deployment } = await deploy("with", [{ name: "GIT_SSH_KEY", value: pasted }]);
    expect([status, status_message]).toEqual(["DEPLOYED", null]);
    const { key, env } = recorded();
    expect(key).toBe(KEY.public);
    expect(env).not.toMatch(/SSH_AUTH_SOCK|a-key-of-the-operator/);
    expect(env).not.toContain(home);

    // Neither the build nor the agent has the key.
    const logs = await server.call("GET", `/v2/deployments/${deployment.id}/logs?type=build&limit=1000`);
    const text = await logs.text();
    expect(text).toContain("npm_config_cache=");
    expect(text).not.toMatch(/GIT_SSH_KEY|PRIVATE KEY/);
    const run = { assistant_id: "agent", input: {} };
    const { answer } = (await (await server.call("POST", "/deployments/with/runs/wait", run)).json()) as {
      answer: { env: Record<string, string> };
    };
    expect(answer.env.LANGSMITH_DEPLOYMENT_NAME).toBe("with");
    expect(Object.keys(answer.env)).not.toContain("GIT_SSH_KEY");
    const kept = readdirSync(join(server.data, "control"), { recursive: true }).map(String);
    expect(kept.filter((file) => file.endsWith("ssh-key"))).toEqual([]);
  });
});

describe("git", () => {
  const lookup = async () => [{ address: "93.184.215.14", family: 4 }];
  const { folder, recorded } = recorder();
  /** The recording programs let every fetch fail. */
  const fetched = async (url: string) => {
    const at = temporaryFolder();
    const env = { PATH: [folder, process.env.PATH].join(delimiter), HOME: at };
    const source = { kind: "git", url, ref: undefined, ssh_key: KEY.private } as const;
    const files = { key: join(at, "ssh-key"), known_hosts: join(at, "known-hosts", "one") };
    const rules = { protocols: ["https", "ssh"], hosts: [], lookup };
    const io = { log: () => undefined, signal: new AbortController().signal };
    const { message } = await checkOut(
      source,
      join(at, "source"),
      files,
      rules,
      { env, timeout_ms: 20_000, user: undefined },
      io,
    ).then(
      () => new Error("it was fetched"),
      (error: Error) => error,
    );
    expect(existsSync(files.key)).toBe(false);
    return message;
  };

  it.each(["git@code.example:team/agent.git", "ssh://git@code.example:2222/team/agent.git"])(
    "connects to the address of %s that was checked, with the arguments as ssh itself reads them",
    async (url) => {
      expect(await fetched(url)).toMatch(/git fetch failed/);
      const { settings } = recorded();
      expect(settings).toMatchObject({
        hostname: "93.184.215.14",
        hostkeyalias: "code.example",
        user: "git",
        identityfile: "../ssh-key",
        identitiesonly: "yes",
        identityagent: "none",
        preferredauthentications: "publickey",
        userknownhostsfile: "../known-hosts/one",
        globalknownhostsfile: "/dev/null",
        stricthostkeychecking: "accept-new",
        batchmode: "yes",
        forwardagent: "no",
      });
      expect(Object.keys(settings)).not.toContain("proxycommand");
    },
  );

  it.each(["ssh://git@a';touch$IFS-evil;'.example/x", "ssh://git@$(id).example/x", "ssh://git@-oProxyCommand=x/y"])(
    "is not called for %s",
    async (url) => {
      expect(await fetched(url)).toMatch(/has no valid host|must be a complete URL/);
    },
  );

  it("over https connects to the address that was checked, too", async () => {
    const at = temporaryFolder();
    const trace = join(at, "trace");
    script(at, "git", `env > ${trace}; exit 1`);
    const source = { kind: "git", url: "https://code.example/x.git", ref: undefined } as const;
    await expect(
      checkOut(
        { ...source, ssh_key: undefined },
        join(at, "source"),
        { key: join(at, "ssh-key"), known_hosts: join(at, "known-hosts", "one") },
        { protocols: ["https"], hosts: [], lookup },
        { env: { PATH: [at, process.env.PATH].join(delimiter), HOME: at }, timeout_ms: 20_000, user: undefined },
        { log: () => undefined, signal: new AbortController().signal },
      ),
    ).rejects.toThrow(/git init failed/);
    const env = readFileSync(trace, "utf8");
    const n = /^GIT_CONFIG_KEY_(\d+)=http.curloptResolve$/m.exec(env)?.[1];
    expect(env.split("\n")).toContain(`GIT_CONFIG_VALUE_${n}=code.example:443:93.184.215.14`);
    expect(env).toMatch(/^GIT_CONFIG_GLOBAL=\/dev\/null$/m);
    expect(env).toMatch(/^GIT_CONFIG_NOSYSTEM=1$/m);
  });
});

/** Passwords over http, as https needs a certificate; git reads both in the same way. */
describe("git over http", () => {
  it("sends no password of the service's user", async () => {
    const home = hostileHome();
    const asked: (string | undefined)[] = [];
    const host = createServer((request, response) => {
      asked.push(request.headers.authorization);
      response.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end();
    }).listen(0, "127.0.0.1");
    await once(host, "listening");
    const { port } = host.address() as { port: number };
    const before = process.env.HOME;
    process.env.HOME = home;
    const world = await openProcessWorld("sqlite", { git_protocols: ["http"], git_hosts: ["127.0.0.1"] });
    const source = { kind: "git", url: `http://127.0.0.1:${port}/x.git`, ref: undefined } as const;
    await expect(world.build({ ...source, ssh_key: undefined })).rejects.toThrow(/git fetch failed/);
    process.env.HOME = before;
    expect(asked.length).toBeGreaterThan(0);
    const sent = asked.map((header) => Buffer.from(header?.split(" ")[1] ?? "", "base64").toString());
    expect(sent.filter((text) => !["", ":"].includes(text))).toEqual([]);
    await world.close();
    host.close();
  });
});

describe("a real sshd", () => {
  const sshd = findSshd();
  let world: ProcessWorld;
  let port: number;
  let at: string;
  let daemon: ReturnType<typeof spawn>;
  const repository = repositoryOf(PROJECT);
  const listen = async (host_key: string) => {
    const config = join(at, "sshd_config");
    const lines = [
      `HostKey ${host_key}`,
      `AuthorizedKeysFile ${join(at, "authorized")}`,
      `PidFile ${join(at, "pid")}`,
      "StrictModes no",
      "PermitRootLogin yes",
      "PasswordAuthentication no",
    ];
    writeFileSync(config, lines.join("\n"));
    // Debian makes it when its own sshd starts.
    if (userInfo().uid === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
    daemon = spawn(sshd, ["-D", "-e", "-f", config, "-p", String(port), "-o", "ListenAddress=127.0.0.1"]);
    await new Promise<void>((listening, failed) => {
      let said = "";
      daemon.stderr?.on("data", (text) => {
        said += text;
        if (said.includes("Server listening")) listening();
      });
      daemon.once("exit", (status) => failed(new Error(`sshd ended with status ${status}: ${said}`)));
    });
  };
  const close = async () => {
    const ended = once(daemon, "exit");
    daemon.kill();
    await ended;
  };
  const fetch = (ssh_key: string) => {
    const url = `ssh://${userInfo().username}@127.0.0.1:${port}${repository}`;
    return world.build({ kind: "git", url, ref: undefined, ssh_key });
  };
  afterAll(async () => {
    if (!sshd) return;
    await close();
    await world.close();
  });

  it.skipIf(!sshd)(
    "gives the source only for the deployment's key, and must have the same host key the next time",
    async () => {
      at = temporaryFolder();
      port = await freePort();
      world = await openProcessWorld("sqlite", { git_protocols: ["ssh"], git_hosts: ["127.0.0.1"] });
      writeFileSync(join(at, "authorized"), KEY.public);
      await listen(keyPair("host").file);
      const { folder } = await fetch(KEY.private);
      expect(existsSync(join(folder, "agent.mjs"))).toBe(true);
      await fetch(KEY.private);
      await expect(fetch(keyPair("another").private)).rejects.toThrow(/Permission denied/);
      await close();
      await listen(keyPair("impostor").file);
      await expect(fetch(KEY.private)).rejects.toThrow(/Host key verification failed/);
    },
  );
});

function repositoryOf(files: Readonly<Record<string, string>>): string {
  const cwd = writeFiles(temporaryFolder(), files);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd, stdio: "pipe" });
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "-m", "first");
  return cwd;
}

function keyPair(name: string): { private: string; public: string; file: string } {
  const file = join(temporaryFolder(), name);
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file]);
  return { private: readFileSync(file, "utf8"), public: readFileSync(`${file}.pub`, "utf8").trim(), file };
}

/** A folder with an ssh that writes down how it was called, and serves repositories of git.test from this machine. */
function recorder() {
  const folder = temporaryFolder();
  script(
    folder,
    "ssh",
    `env > ${folder}/env
echo "$@" > ${folder}/arguments
${SSH} -G "$@" > ${folder}/settings
key=$(sed -n 's/^identityfile //p' ${folder}/settings)
ssh-keygen -y -P "" -f "$key" > ${folder}/key || exit 1
for command; do :; done
case "$*" in *@git.test*) exec sh -c "$command";; *) exit 1;; esac`,
  );
  const read = (name: string) => readFileSync(join(folder, name), "utf8").trim();
  return {
    folder,
    recorded: () => ({
      env: read("env"),
      key: read("key"),
      settings: Object.fromEntries(
        read("settings")
          .split("\n")
          .map((line) => [line.split(" ")[0], line.slice(line.indexOf(" ") + 1)]),
      ) as Record<string, string>,
    }),
  };
}

/** What an operator has at home that would let git in. */
function hostileHome(): string {
  const home = temporaryFolder();
  mkdirSync(join(home, ".ssh"), { mode: 0o700 });
  writeFileSync(join(home, ".ssh/id_ed25519"), keyPair("operator").private, { mode: 0o600 });
  writeFileSync(join(home, ".netrc"), "default login operator password hunter2\n", { mode: 0o600 });
  writeFileSync(join(home, ".git-credentials"), "http://operator:hunter2@127.0.0.1\n", { mode: 0o600 });
  const helper = "!f() { echo username=operator; echo password=hunter2; }; f";
  writeFileSync(
    join(home, ".gitconfig"),
    `[credential]\n\thelper = "${helper}"\n[http]\n\textraHeader = "X: operator"\n`,
  );
  return home;
}

function script(folder: string, name: string, text: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(folder, name), 0o755);
}

/** As root sshd needs the user of its package, too. */
function findSshd(): string {
  const found = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"]
    .map((folder) => join(folder, "sshd"))
    .find((file) => existsSync(file));
  const isComplete = process.getuid?.() !== 0 || /^sshd:/m.test(readFileSync("/etc/passwd", "utf8"));
  if (found && isComplete) return found;
  console.log("git over a real sshd is not tested: there is none here (Debian: apt install openssh-server).");
  return "";
}
