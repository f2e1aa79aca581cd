import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  globSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { InstanceSpec } from "../../src/control-plane/drivers/driver.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { virtualEnvironment } from "../support/python.ts";
import { packed } from "./deployed-project.ts";
import { answersOk, ask } from "./driver-conformance.ts";
import { openProcessWorld, type ProcessWorld } from "./process-world.ts";

const agent = (answer: string) => `
import os
from typing import Any, TypedDict
from langgraph.graph import START, StateGraph
import helper

class State(TypedDict, total=False):
    answer: Any

def node(state):
    return {"answer": {"text": helper.quote(${JSON.stringify(answer)}), "secret": os.environ.get("SECRET"), "keys": os.environ.get("API_KEYS")}}

graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
`;
const project = (answer: string, more: Record<string, string> = {}) =>
  packed({
    "langgraph.json": JSON.stringify({ dependencies: ["."], graphs: { agent: "./agent.py:graph" } }),
    "agent.py": agent(answer),
    "helper.py": "def quote(text):\n    return f'<{text}>'\n",
    "requirements.txt": "langgraph>=1.2,<2\n",
    ...more,
  });

describe("a deployment with graphs in Python", () => {
  let world: ProcessWorld;
  const deployment_id = randomUUID();
  beforeAll(async () => {
    world = await openProcessWorld("sqlite", { build_timeout_ms: 300_000 });
  });
  afterAll(() => world.close());

  const build = async (source: Promise<Awaited<ReturnType<typeof packed>>>) => {
    const { lines, ...built } = await world.build(await source, { deployment_id });
    return { ...built, messages: lines.map(({ message }) => message) };
  };
  const environments = () => readdirSync(join(world.folder, "python-envs", deployment_id));

  it("has an environment with its packages, which a build of other code uses again", async () => {
    const first = await build(project("one"));
    expect(first.messages).toContainEqual(
      expect.stringMatching(/^\$ (uv pip|python -m pip) install .*-r requirements.txt$/),
    );
    expect(lstatSync(join(first.folder, ".venv")).isSymbolicLink()).toBe(true);
    const second = await build(project("two"));
    expect(second.messages).toContain("Using an existing Python environment with the packages of this project.");
    expect(readlinkSync(join(second.folder, ".venv"))).toBe(readlinkSync(join(first.folder, ".venv")));
    expect(environments()).toHaveLength(1);

    const order: InstanceSpec = instanceSpec({ artifact: second.artifact, deployment_id, env: { SECRET: "s-1" } });
    const ref = await world.driver.ensure(order);
    await answersOk(ref);
    expect(await ask(ref, order, {})).toEqual({ text: "<two>", secret: "s-1", keys: null });
    await world.driver.stop(ref, { grace_ms: 5_000 });
  });

  it("fails with the output of the installer", async () => {
    const source = project("three", { "requirements.txt": "langgraph>=1.2\nno-such-package-of-threadmill==9.9\n" });
    await expect(build(source)).rejects.toThrow(/install .*failed with status 1.*no-such-package-of-threadmill/s);
  });

  it("replaces the environment in a source, which works only where it was created", async () => {
    const { folder } = await build(project("four", { ".venv/pyvenv.cfg": "home = /nonexistent" }));
    expect(environments()).toContain(basename(readlinkSync(join(folder, ".venv"))));
  });

  it("is built without following the links and pipes that its packages leave, and pruned", async () => {
    const victim = join(mkdtempSync(join(tmpdir(), "threadmill-victim-")), "file");
    writeFileSync(victim, "untouched");
    const setup = `
import os
from setuptools import setup
if not os.path.lexists("../.threadmill-python"):
    os.symlink(${JSON.stringify(victim)}, os.environ["VIRTUAL_ENV"] + "/.complete")
    os.symlink(${JSON.stringify(victim)}, "../.threadmill-python")
    os.mkfifo("../.venv")
setup(name="hostile")
`;
    const requirements = "langgraph>=1.2,<2\n./hostile\n";
    const built = await build(project("five", { "requirements.txt": requirements, "hostile/setup.py": setup }));
    expect(readFileSync(victim, "utf8")).toBe("untouched");
    rmSync(dirname(victim), { recursive: true });
    const name_file = join(built.folder, ".threadmill-python");
    expect(readFileSync(name_file, "utf8")).toBe(basename(readlinkSync(join(built.folder, ".venv"))));

    rmSync(name_file);
    await promisify(execFile)("mkfifo", [name_file]);
    await world.driver.prune?.({ deployment_id, keep: [built.artifact] });
  });
});

const uv = await virtualEnvironment({
  client: "uv",
  folder_prefix: "uv",
  requirements: join(import.meta.dirname, "../python/uv.txt"),
  oldest: [3, 11],
});

describe.runIf(uv)("a deployment with graphs in Python on a machine with uv", () => {
  let world: ProcessWorld;
  const PATH = `${dirname(uv ?? "")}:${process.env.PATH}`;
  beforeAll(async () => {
    world = await openProcessWorld("sqlite", { build_timeout_ms: 300_000, system_env: { PATH, LANG: "C.UTF-8" } });
  });
  afterAll(() => world.close());

  // Otherwise uv trusts no mirror of its own certificate authority.
  const env = { UV_SYSTEM_CERTS: "true" };
  const answerOf = async (files: Record<string, string>) => {
    const deployment_id = randomUUID();
    const { lines, artifact, folder } = await world.build(await project("uv", files), { deployment_id, env });
    const bytecode = globSync(".venv/lib/*/site-packages/langgraph/pregel/__pycache__/main.*.pyc", { cwd: folder });
    const order = instanceSpec({ artifact, deployment_id, env: {} });
    const ref = await world.driver.ensure(order);
    await answersOk(ref);
    const answer = await ask(ref, order, {});
    await world.driver.stop(ref, { grace_ms: 5_000 });
    return {
      commands: lines.map(({ message }) => message).filter((message) => message.startsWith("$ uv")),
      answer,
      isCompiled: bytecode.length === 1,
    };
  };

  it("has the packages of requirements.txt", async () => {
    expect(await answerOf({})).toEqual({
      commands: ["$ uv pip install -r requirements.txt"],
      answer: { text: "<uv>", secret: null, keys: null },
      isCompiled: true,
    });
  });

  it("has exactly the packages of uv.lock", async () => {
    const folder = mkdtempSync(join(tmpdir(), "threadmill-uv-"));
    const pyproject = `[project]\nname = "agent"\nversion = "1.0.0"\nrequires-python = ">=3.11"\ndependencies = ["langgraph==1.2.24"]\n`;
    writeFileSync(join(folder, "pyproject.toml"), pyproject);
    await promisify(execFile)("uv", ["lock"], { cwd: folder, env: { ...process.env, ...env, PATH } });
    const lock = readFileSync(join(folder, "uv.lock"), "utf8");
    rmSync(folder, { recursive: true });
    expect(await answerOf({ "pyproject.toml": pyproject, "uv.lock": lock })).toEqual({
      commands: ["$ uv sync --frozen --no-dev --no-install-workspace"],
      answer: { text: "<uv>", secret: null, keys: null },
      isCompiled: true,
    });
  });
});
