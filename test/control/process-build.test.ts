import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Header, type HeaderData } from "tar";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type BuildSpec, DeployError } from "../../src/control-plane/drivers/driver.ts";
import { startOf } from "../../src/control-plane/drivers/process/process-identity.ts";
import { until } from "../support/until.ts";
import {
  AGENT,
  LANGGRAPH_JSON,
  PROJECT,
  packed,
  type Tarball,
  tarballAt,
  temporaryFolder,
  writeFiles,
} from "./deployed-project.ts";
import { openProcessWorld, type ProcessWorld } from "./process-world.ts";

const LIMITS = { packed_bytes: 1_000_000, unpacked_bytes: 2_000_000, files: 50 };

describe("a build of the process driver", () => {
  let world: ProcessWorld;
  beforeEach(async () => {
    world = await openProcessWorld("sqlite", { unpack_limits: LIMITS, build_timeout_ms: 20_000 });
  });
  afterEach(async () => {
    // Nothing half-made is left, whatever became of the build.
    expect(readdirSync(join(world.folder, "making"))).toEqual([]);
    await world.close();
  });
  const nothingWasMade = () => expect(readdirSync(join(world.folder, "builds"))).toEqual(["node_modules"]);

  /** Expects a failure that its user can read. */
  const failure = async (source: BuildSpec["source"], more: Partial<BuildSpec> = {}): Promise<string> => {
    const error = await world.build(source, more).then(
      () => new Error("it was built"),
      (reason: Error) => reason,
    );
    expect(error).toBeInstanceOf(DeployError);
    nothingWasMade();
    return error.message;
  };

  it("of source without dependencies is a folder that appears atomically", async () => {
    const { folder, lines } = await world.build(await packed(PROJECT));
    expect(readFileSync(join(folder, "agent.mjs"), "utf8")).toBe(AGENT);
    expect(lines.map(({ message }) => message)).toEqual(["Unpacking the source", "Build complete."]);
  });

  it("runs once for the same source, and again for other commands, secrets or deployments", async () => {
    const source = await packed(PROJECT);
    const first = await world.build(source);
    const made_at = statSync(first.folder).ctimeMs;
    const again = await world.build(source);
    expect([again.artifact, statSync(again.folder).ctimeMs]).toEqual([first.artifact, made_at]);
    const others = [
      await world.build(source, { build_command: "true" }),
      await world.build(source, { env: { A: "1" } }),
      await world.build(source, { deployment_id: randomUUID() }),
      await world.build(await packed({ ...PROJECT, "README.md": "new" })),
    ];
    expect(new Set([first, ...others].map(({ artifact }) => artifact)).size).toBe(5);
  });

  it("is deleted when it is not among those to keep; builds of other deployments stay", async () => {
    const [kept, old] = [await packed(PROJECT), await packed({ ...PROJECT, "README.md": "old" })];
    const { artifact, folder } = await world.build(kept);
    const { folder: deleted } = await world.build(old);
    const { folder: elsewhere } = await world.build(old, { deployment_id: randomUUID() });
    const deployment_id = folder.split("/").at(-2) as string;
    await world.driver.prune?.({ deployment_id, keep: [artifact] });
    expect([folder, deleted, elsewhere].map(existsSync)).toEqual([true, false, true]);
    await world.driver.prune?.({ deployment_id: randomUUID(), keep: [] });
  });

  it("of the same source at the same time succeeds for both", async () => {
    const source = await packed(PROJECT);
    const [one, other] = await Promise.all([world.build(source), world.build(source)]);
    expect(one.artifact).toBe(other.artifact);
  });

  describe("refuses a tarball", () => {
    it.each<[string, HeaderData, RegExp]>([
      ["with a symbolic link", { path: "x", type: "SymbolicLink", linkpath: "/etc/passwd" }, /"x", a link/],
      ["with a hard link", { path: "x", type: "Link", linkpath: "agent.mjs" }, /"x", a link/],
      ["with an absolute path", { path: "/tmp/evil", type: "File" }, /"\/tmp\/evil", an absolute path/],
      ["with a way out", { path: "a/../../evil", type: "File" }, /a path outside of the source folder/],
      ["with a way out for Windows", { path: "a\\..\\..\\evil", type: "File" }, /a path outside of the source folder/],
      ["with a device", { path: "null", type: "CharacterDevice" }, /neither a file nor a folder/],
      ["with a named pipe", { path: "pipe", type: "FIFO" }, /neither a file nor a folder/],
      [
        "with a file too large",
        { path: "big", type: "File", size: 3_000_000 },
        /too large: more than 1 MB when unpacked/,
      ],
    ])("%s", async (_, entry, sentence) => {
      expect(await failure(rawTarball([entry]))).toMatch(sentence);
    });

    it("with too many files", async () => {
      const entries = Array.from({ length: 51 }, (_, n): HeaderData => ({ path: `f${n}`, type: "File" }));
      expect(await failure(rawTarball(entries))).toBe("The source is too large: more than 50 files.");
    });

    it("that continues to inflate after its last file", async () => {
      const source = rawTarball([{ path: "f", type: "File" }], Buffer.alloc(20_000_000));
      expect(await failure(source)).toMatch(/too large: more than \d+ MB when unpacked/);
    });

    it("that is larger than an upload may be", async () => {
      const noise = Buffer.from(Array.from({ length: 1_100_000 }, () => Math.floor(Math.random() * 256)));
      expect(await failure(rawTarball([{ path: "f", type: "File", size: noise.length }], noise))).toMatch(/0 MB|1 MB/);
    });

    it.each([
      ["that is none", Buffer.from("hello")],
      ["that is cut short", gzipSync(Buffer.alloc(4096, "x")).subarray(0, 30)],
      ["that holds nonsense", gzipSync(Buffer.alloc(4096, "x"))],
    ])("%s", async (_, bytes) => {
      const file = join(temporaryFolder(), "source.tar.gz");
      writeFileSync(file, bytes);
      expect(await failure(tarballAt(file))).toBe(
        "The source is not a complete gzip-compressed tarball: create the tarball again and repeat the upload.",
      );
    });

    it("that names one path as a file and as a folder", async () => {
      const source = rawTarball([
        { path: "a", type: "File" },
        { path: "a/b", type: "File" },
      ]);
      expect(await failure(source)).toMatch(/a path that is both a file and a folder/);
    });
  });

  it("does not take permissions or owners from a tarball", async () => {
    const files: HeaderData[] = [
      { path: "langgraph.json", type: "File", mode: 0o4777, uid: 12345, size: LANGGRAPH_JSON.length },
      { path: "agent.mjs", type: "File", mode: 0o000, uid: 12345 },
    ];
    const { folder } = await world.build(rawTarball(files, Buffer.from(LANGGRAPH_JSON.padEnd(512, "\0"))));
    const [json, agent] = ["langgraph.json", "agent.mjs"].map((name) => statSync(join(folder, name)));
    expect([json?.mode, agent?.mode].map((mode) => (mode ?? 0) & 0o7777)).toEqual([0o755, 0o644]);
    expect(json?.uid).not.toBe(12345);
  });

  it.each([
    [
      "has no langgraph.json",
      { "agent.mjs": AGENT },
      {},
      "The source does not contain langgraph.json: set langgraph_config_path to the path of langgraph.json within the source.",
    ],
    [
      "has none where it should be",
      PROJECT,
      { config_path: "app/langgraph.json" },
      "The source does not contain app/langgraph.json: set langgraph_config_path to the path of langgraph.json within the source.",
    ],
    [
      "is to be read elsewhere",
      PROJECT,
      { config_path: "../../x.json" },
      'langgraph_config_path "../../x.json" is not a file path within the source: use a path relative to the root of the source, without "..".',
    ],
    [
      "is to be read anywhere",
      PROJECT,
      { config_path: "/etc/passwd" },
      'langgraph_config_path "/etc/passwd" is not a file path within the source: use a path relative to the root of the source, without "..".',
    ],
    ["has one that is no JSON", { "langgraph.json": "{" }, {}, "langgraph.json is not valid JSON."],
    [
      "has no graphs",
      { "langgraph.json": "{}" },
      {},
      'langgraph.json: the field "graphs" must map graph names to paths, for example {"agent": "./agent.ts:graph"}.',
    ],
    [
      "names a module that is not there",
      { "langgraph.json": LANGGRAPH_JSON },
      {},
      "langgraph.json refers to files that do not exist in the source: ./agent.mjs (graphs.agent).",
    ],
    [
      "names a version of Python that is not there for its authentication module",
      {
        "langgraph.json": '{"graphs":{"a":"./a.mjs:graph"},"auth":{"path":"./b.py:auth"},"python_version":"3.99"}',
        "a.mjs": "",
        "b.py": "",
      },
      {},
      "The project is written in Python, but there is no Python 3.99 interpreter on the PATH.",
    ],
    [
      "names a version of Python that is not there",
      { "langgraph.json": '{"graphs":{"a":"./a.py:graph"},"python_version":"3.99"}', "a.py": "" },
      {},
      "The project is written in Python, but there is no Python 3.99 interpreter on the PATH.",
    ],
  ])("fails when the source %s", async (_, files, more, sentence) => {
    expect(await failure(await packed(files as Record<string, string>), more)).toBe(sentence);
  });

  it("logs the output of its commands, which get the secrets but no variables of the service", async () => {
    process.env.CANARY_OF_THE_SERVICE = "must not be seen";
    const { lines, folder } = await world.build(await packed({ ...PROJECT, "sub/x": "" }), {
      install_command: "pwd > where && echo installing $TOKEN && env",
      build_command: "echo building >&2; touch built",
      env: { TOKEN: "t-1" },
    });
    delete process.env.CANARY_OF_THE_SERVICE;
    const messages = lines.map(({ message }) => message);
    expect(messages).toEqual(
      expect.arrayContaining(["installing t-1", "building", "$ echo building >&2; touch built"]),
    );
    expect(messages.join("\n")).not.toContain("must not be seen");
    expect(existsSync(join(folder, "built"))).toBe(true);
  });

  it("installs at the root and builds beside langgraph.json", async () => {
    const files = { "apps/a/langgraph.json": LANGGRAPH_JSON, "apps/a/agent.mjs": AGENT };
    const { folder } = await world.build(await packed(files), {
      config_path: "apps/a/langgraph.json",
      install_command: "touch installed",
      build_command: "touch built",
    });
    expect([existsSync(join(folder, "installed")), existsSync(join(folder, "apps/a/built"))]).toEqual([true, true]);
  });

  it("fails with the last output of a command", async () => {
    const message = await failure(await packed(PROJECT), { build_command: "echo all is lost; exit 3" });
    expect(message).toBe("echo all is lost; exit 3 failed with status 3. Last output:\nall is lost");
  });

  it("fails when a build leads langgraph.json out of the source", async () => {
    const command = "rm langgraph.json; ln -s /etc/hostname langgraph.json";
    expect(await failure(await packed(PROJECT), { build_command: command })).toMatch(
      /^The source does not contain langgraph.json/,
    );
  });

  it("runs the script build when what langgraph.json names is not there yet", async () => {
    const manifest = { name: "x", scripts: { build: "cp source.txt agent.mjs" } };
    const files = { "langgraph.json": LANGGRAPH_JSON, "source.txt": AGENT, "package.json": JSON.stringify(manifest) };
    const { folder, lines } = await world.build(await packed(files));
    expect(readFileSync(join(folder, "agent.mjs"), "utf8")).toBe(AGENT);
    expect(lines.map(({ message }) => message)).toContain("$ npm run build");
  });

  it("installs what package.json asks for", async () => {
    const manifest = { name: "x", dependencies: { local: "file:./local" } };
    const local = { "local/package.json": JSON.stringify({ name: "local", version: "1.0.0" }) };
    const files = { ...PROJECT, ...local, "package.json": JSON.stringify(manifest) };
    const { folder } = await world.build(await packed(files));
    expect(existsSync(join(folder, "node_modules/local/package.json"))).toBe(true);
  });

  it("creates an empty file for secrets that were not packed", async () => {
    const json = JSON.stringify({ ...JSON.parse(LANGGRAPH_JSON), env: ".env" });
    const { folder } = await world.build(await packed({ ...PROJECT, "langgraph.json": json }));
    expect(readFileSync(join(folder, ".env"), "utf8")).toBe("");
  });

  it("is stopped with everything that it has started", async () => {
    const stop = new AbortController();
    const said: string[] = [];
    const source = await packed(PROJECT);
    const build = world.driver.build?.bind(world.driver);
    const building = build?.(
      {
        deployment_id: randomUUID(),
        revision_id: randomUUID(),
        source,
        config_path: undefined,
        install_command: undefined,
        build_command: "sleep 600 & echo pid $!; wait",
        env: {},
      },
      { log: ({ message }) => said.push(message), signal: stop.signal },
    );
    const pid = () => Number(said.flatMap((message) => /^pid (\d+)$/.exec(message)?.[1] ?? [])[0]);
    await until("it has started", async () => pid() > 0);
    stop.abort(new Error("interrupted"));
    await expect(building).rejects.toThrow("interrupted");
    await until("it is deleted", async () => !isRunning(pid()));
    nothingWasMade();
  });

  it("has a time limit", async () => {
    await world.close();
    world = await openProcessWorld("sqlite", { build_timeout_ms: 300 });
    expect(await failure(await packed(PROJECT), { build_command: "echo begun; sleep 600" })).toMatch(
      /exceeded the time limit of 0.3 s and was killed. Last output:\nbegun/,
    );
  });

  it("of a service that died is removed by the next service, and its running command is stopped", async () => {
    const left = join(world.folder, "making", `${2 ** 22 + 1}-1@nowhere-abcd1234`);
    mkdirSync(join(left, "source"), { recursive: true });
    const command = spawn("sleep", ["600"], { detached: true });
    const [pid, ended] = [command.pid as number, once(command, "exit")];
    writeFileSync(join(left, "command.json"), JSON.stringify({ pid, started: await startOf(pid) }));
    await world.restart();
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(existsSync(left)).toBe(false);
  });
});

describe("a build of a git repository", () => {
  let world: ProcessWorld;
  let repository: string;
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], {
      cwd: repository,
      encoding: "utf8",
      stdio: "pipe",
    }).trim();
  const shas: Record<string, string> = {};
  beforeAll(async () => {
    world = await openProcessWorld("sqlite");
    repository = writeFiles(temporaryFolder(), { ...PROJECT, "which.txt": "first" });
    symlinkSync("/etc/hostname", join(repository, "link"));
    git("init", "--quiet", "--initial-branch=main");
    const commit = (name: string) => {
      git("add", ".");
      git("commit", "--quiet", "-m", name);
      shas[name] = git("rev-parse", "HEAD");
    };
    commit("first");
    git("tag", "v1");
    writeFiles(repository, { "which.txt": "second" });
    commit("second");
    git("checkout", "--quiet", "-b", "feature/x");
    writeFiles(repository, { "which.txt": "third" });
    commit("third");
    git("checkout", "--quiet", "main");
  });
  afterAll(() => world.close());
  const source = (ref?: string) => ({ kind: "git", url: `file://${repository}`, ref, ssh_key: undefined }) as const;

  it.each([
    [undefined, "second"],
    ["main", "second"],
    ["feature/x", "third"],
    ["v1", "first"],
    ["refs/tags/v1", "first"],
    ["refs/heads/feature/x", "third"],
  ])("fetches the ref %s and says which commit it was", async (ref, name) => {
    const { commit_sha, folder } = await world.build(source(ref));
    expect(commit_sha).toBe(shas[name]);
    expect(readFileSync(join(folder, "which.txt"), "utf8")).toBe(name);
    expect(existsSync(join(folder, ".git"))).toBe(false);
    // What was a link is a file that names where it led.
    expect(readFileSync(join(folder, "link"), "utf8")).toBe("/etc/hostname");
  });

  it("has the same name for two refs of one commit", async () => {
    expect((await world.build(source("main"))).artifact).toBe((await world.build(source(undefined))).artifact);
  });

  it.each([
    ["nobody/has/this", /git fetch failed with status 128.*couldn't find remote ref/s],
    ["--upload-pack=touch /tmp/evil", /is not supported: use a branch/],
    ["a..b", /is not supported: use a branch/],
  ])("fails in a sentence for the ref %s", async (ref, sentence) => {
    await expect(world.build(source(ref))).rejects.toThrow(sentence);
  });

  it.each([
    ["http://example.com/x.git", /cannot be fetched over http,/],
    ["ssh://git@example.com/x.git", /cannot be fetched over ssh,/],
    ["git@example.com:x.git", /cannot be fetched over ssh,/],
    ["ext::sh -c touch% /tmp/evil", /must be a complete URL/],
    ["https://127.0.0.1/x.git", /public internet/],
    ["https://169.254.169.254/x.git", /public internet/],
    ["https://localhost/x.git", /public internet/],
    ["https://user:secret@example.com/x.git", /must not contain a user name or a password/],
    ["-oProxyCommand=evil", /must be a complete URL/],
    ["", /must be a complete URL/],
  ])("fetches nothing from %s", async (url, sentence) => {
    await expect(world.build({ ...source(), url })).rejects.toThrow(sentence);
  });

  it("fetches no files of the machine unless it may", async () => {
    const strict = await openProcessWorld("sqlite", { git_protocols: ["https"] });
    await expect(strict.build(source())).rejects.toThrow(/cannot be fetched over file, only over https/);
    await strict.close();
  });
});

describe("a build on a full disk", () => {
  const disk = temporaryFolder();
  const isMounted = mounts(disk);
  afterAll(() => {
    if (isMounted) execFileSync("umount", [disk]);
  });

  it.skipIf(!isMounted)("fails with an error message and leaves no files", async () => {
    const world = await openProcessWorld("sqlite", { data_dir: disk });
    const noise = Buffer.from(Array.from({ length: 3_000_000 }, () => Math.floor(Math.random() * 256)));
    const source = rawTarball([{ path: "f", type: "File", size: noise.length }], noise);
    await expect(world.build(source)).rejects.toThrow(
      new DeployError("The disk of the Threadmill service is full: free up disk space, then try again."),
    );
    expect(readdirSync(join(disk, "control/making"))).toEqual([]);
    expect(readdirSync(join(disk, "control/builds"))).toEqual(["node_modules"]);
    await world.close();
  });
});

/** A tmpfs of 2 MB, where mounting is permitted; elsewhere says that it was not. */
function mounts(folder: string): boolean {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], { stdio: "pipe" });
    return true;
  } catch {
    console.log("A full disk is not tested: mounting a small tmpfs is not permitted here.");
    return false;
  }
}

/** A tarball as nobody's packer makes it: these headers, with these bytes behind the first. */
function rawTarball(entries: HeaderData[], content = Buffer.alloc(0)): Tarball {
  const blocks = entries.flatMap((entry, n) => {
    const header = Buffer.alloc(512);
    new Header({ mode: 0o644, size: 0, mtime: new Date(0), ...entry }).encode(header, 0);
    return n === 0 ? [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)] : [header];
  });
  const file = join(temporaryFolder(), "source.tar.gz");
  writeFileSync(file, gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)])));
  return tarballAt(file);
}

function isRunning(pid: number): boolean {
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8") : "";
  return stat !== "" && !/\) Z /.test(stat);
}
