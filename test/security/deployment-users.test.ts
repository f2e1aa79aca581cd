import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { insertWorkspace } from "../../src/access/storage/workspaces.ts";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import { deploymentSettings } from "../../src/config/settings/deployments.ts";
import { foldersIn } from "../../src/control-plane/drivers/process/folders.ts";
import { chownTree } from "../../src/control-plane/drivers/process/system-users.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { PROJECT, packed, temporaryFolder } from "../control/deployed-project.ts";
import { answersOk, ask } from "../control/driver-conformance.ts";
import { openProcessWorld, type ProcessWorld } from "../control/process-world.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { until } from "../support/until.ts";

/** Finding 4 of the security review: builds and instances had the rights of the service. */

const RANGE = { from: 61_184, to: 65_519 };
const isRoot = process.getuid?.() === 0;

/** Leaves its process group, and tells its number once it has. */
const LEAVES = `mkfifo pipe; setsid sh -c 'echo $$ > pipe; exec sleep 60'`;

describe.skipIf(!isRoot)("a deployment's user of the system", () => {
  let world: ProcessWorld;
  beforeEach(async () => {
    world = await openProcessWorld("sqlite");
  });
  afterEach(() => world.close());

  /** What a command of a build prints; its status does not matter. */
  async function said(command: string, deployment_id: string = randomUUID()): Promise<string> {
    const built = await world.build(await packed(PROJECT), {
      deployment_id,
      install_command: `{ ${command}; } 2>&1 || true`,
    });
    return built.lines.map(({ message }) => message).join("\n");
  }
  const specFor = async (deployment_id: string = randomUUID()) => {
    const { artifact } = await world.build(await packed(PROJECT), { deployment_id });
    return instanceSpec({ artifact, deployment_id });
  };
  const uidOf = (path: string) => statSync(path).uid;
  const dataOf = (deployment_id: string) => join(foldersIn(world.folder).data, deployment_id);

  it("is not the service's, nor that of another deployment, and stays the same", async () => {
    const [one, two] = [randomUUID(), randomUUID()];
    const idOf = async (deployment_id: string) => Number((await said("id -u", deployment_id)).match(/^\d+$/m)?.[0]);
    const [first, second] = [await idOf(one), await idOf(two)];
    for (const uid of [first, second]) {
      expect(uid).toBeGreaterThanOrEqual(RANGE.from);
      expect(uid).toBeLessThanOrEqual(RANGE.to);
    }
    expect(first).not.toBe(second);
    await world.restart();
    expect(uidOf(dataOf(one))).toBe(first);
    expect(await said("id -u; true again", one)).toContain(`\n${first}\n`);
  });

  it.each([
    ["the environment of the service", () => "cat /proc/$PPID/environ"],
    ["the memory of the service", () => "head -c 1 /proc/$PPID/mem"],
    ["what is in the data folder", (data_dir: string) => `ls ${data_dir}`],
    ["the database", (data_dir: string) => `cat ${data_dir}/threadmill.db`],
    ["the encryption keys", (data_dir: string) => `cat ${data_dir}/encryption.keys`],
    ["which deployments there are", (data_dir: string) => `ls ${data_dir}/control/data`],
    ["which builds there are", (data_dir: string) => `ls ${data_dir}/control/builds`],
    ["the logs of instances", (data_dir: string) => `ls ${data_dir}/control/logs`],
    ["to write to the folder of builds", (data_dir: string) => `touch ${data_dir}/control/builds/mine`],
    ["to end the service", () => "kill -0 $PPID"],
  ])("gives a build no access to %s", async (_, attack) => {
    writeFileSync(join(world.at.data_dir, "threadmill.db"), "", { flag: "a" });
    writeFileSync(join(world.at.data_dir, "encryption.keys"), "secret", { mode: 0o600 });
    mkdirSync(foldersIn(world.folder).logs, { recursive: true, mode: 0o700 });
    expect(await said(attack(world.at.data_dir))).toMatch(/[Pp]ermission denied|not permitted/);
  });

  it("gives a build or an instance no access to another deployment", async () => {
    const order = await specFor();
    const ref = await world.driver.ensure(order);
    await answersOk(ref);
    const asked = await ask(ref, order, {});
    const { builds } = foldersIn(world.folder);
    const { deployment_id } = order;
    for (const attack of [
      `cat /proc/${asked.pid}/environ`,
      `kill -0 ${asked.pid}`,
      `ls ${dataOf(deployment_id)}`,
      `cat ${dataOf(deployment_id)}/threadmill.db`,
      `cat ${join(builds, deployment_id, order.artifact, "agent.mjs")}`,
    ])
      expect([attack, await said(attack)]).toEqual([
        attack,
        expect.stringMatching(/[Pp]ermission denied|not permitted/),
      ]);
    await world.driver.stop(ref, { grace_ms: 10_000 });
  });

  it("has its own home and npm cache, and its files are only its own", async () => {
    const text = await said('echo $HOME; echo $npm_config_cache; touch a; ls -l a; touch "$HOME/b"');
    expect(text).toMatch(/\/making\/.*\/home$/m);
    expect(text).toMatch(/\/npm-cache\/[0-9a-f-]{36}$/m);
    expect(text).toContain("-rw------- 1");
  });

  it("owns its instance, its database and its home", async () => {
    const order = await specFor();
    const ref = await world.driver.ensure(order);
    await answersOk(ref);
    const { pid } = await ask(ref, order, {});
    const uid = uidOf(`/proc/${pid}`);
    expect(uid).toBeGreaterThanOrEqual(RANGE.from);
    const data = dataOf(order.deployment_id);
    expect(["threadmill.db", "home"].map((name) => uidOf(join(data, name)))).toEqual([uid, uid]);
    expect(statSync(join(data, "threadmill.db")).mode & 0o777).toBe(0o600);
    await world.driver.stop(ref, { grace_ms: 10_000 });
  });

  it("is not that of a deployment of another service of the machine", async () => {
    const deploy_user = { from: 70_000, to: 70_001 };
    const found: number[] = [];
    const worlds = [
      await openProcessWorld("sqlite", { deploy_user }),
      await openProcessWorld("sqlite", { deploy_user }),
    ];
    for (const { build, folder } of worlds) {
      const deployment_id = randomUUID();
      await build(await packed(PROJECT), { deployment_id });
      found.push(uidOf(join(foldersIn(folder).data, deployment_id)));
    }
    await Promise.all(worlds.map((one) => one.close()));
    expect(found.sort()).toEqual([70_000, 70_001]);
  });

  it("takes over what a deployment had before it got one", async () => {
    const order = await specFor();
    const data = dataOf(order.deployment_id);
    const built = join(foldersIn(world.folder).builds, order.deployment_id);
    const before = await world.driver.ensure(order);
    await answersOk(before);
    await world.driver.stop(before, { grace_ms: 10_000 });
    for (const folder of [data, built]) await chownTree(folder, { uid: 0, gid: 0 });
    chmodSync(built, 0o700);
    await world.restart();
    const ref = await world.driver.ensure({ ...order, instance_id: randomUUID() });
    await answersOk(ref);
    expect((await ask(ref, order, {})).pid).toBeGreaterThan(0);
    expect(uidOf(join(data, "threadmill.db"))).toBe(uidOf(data));
    await world.driver.stop(ref, { grace_ms: 10_000 });
  });

  it.each([
    ["a pipe that nobody writes to", "mkfifo"],
    ["a folder", "mkdir"],
  ])("does not block the service with %s in place of a file", async (_, make) => {
    for (const name of ["langgraph.json", "package.json"]) {
      const files = { ...PROJECT, "package.json": '{"scripts": {"build": "true"}}' };
      const install_command = `rm ${name} agent.mjs; ${make} ${name}`;
      await expect(world.build(await packed(files), { install_command })).rejects.toThrow(
        /is not a file|not in|has no/,
      );
    }
  });

  it("does not delay builds with processes that it leaves in the background", async () => {
    const began = performance.now();
    expect(await said(`${LEAVES} & cat pipe`)).toMatch(/^\d+$/m);
    expect(performance.now() - began).toBeLessThan(30_000);
  });

  it("does not make the service create files outside of its source", async () => {
    const outside = temporaryFolder();
    const project = { graphs: { agent: "./agent.mjs:graph" }, env: "link/made" };
    await expect(
      world.build(await packed({ ...PROJECT, "langgraph.json": JSON.stringify(project) }), {
        install_command: `ln -s ${outside} link`,
      }),
    ).rejects.toThrow("must be within the source, in an existing folder");
    expect(readdirSync(outside)).toEqual([]);
    rmSync(outside, { recursive: true });
  });

  it("is released with the deployment after its processes have ended, and only then reused", async () => {
    const deployment_id = randomUUID();
    const left = Number((await said(`${LEAVES} > /dev/null 2>&1 & cat pipe`, deployment_id)).match(/^(\d+)$/m)?.[1]);
    expect(existsSync(`/proc/${left}`)).toBe(true);
    const uid = uidOf(dataOf(deployment_id));
    await world.driver.remove({ deployment_id, artifacts: [] });
    await until("it has ended", async () => !existsSync(`/proc/${left}`));
    await world.restart();
    const next = randomUUID();
    await said("true", next);
    expect(uidOf(dataOf(next))).not.toBe(uid);
    expect(readdirSync(join(world.folder, "uids"))).toHaveLength(2);
    const { npm_cache, builds, data } = foldersIn(world.folder);
    for (const folder of [npm_cache, builds, data]) expect(existsSync(join(folder, deployment_id))).toBe(false);
  });
});

describe("building source with the rights of the service", () => {
  let world: ProcessWorld;
  afterEach(() => world.close());
  const open = async (more: Parameters<typeof openProcessWorld>[1]) => {
    world = await openProcessWorld("sqlite", more);
    await migrate(world.database, MIGRATIONS.agents);
  };
  const build = async () => world.build(await packed({ ...PROJECT, "README.md": randomUUID() }));
  /** A data folder that only this user can get to. */
  const closed = () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o700);
    mkdirSync(join(folder, "data"));
    return join(folder, "data");
  };

  it("ends with the second workspace", async () => {
    await open({ data_dir: closed() });
    expect((await build()).artifact).not.toBe("");
    for (const name of ["one", "two"])
      await world.database.write((tx) => insertWorkspace(tx, { tenant_id: randomUUID(), name }));
    await expect(build()).rejects.toThrow(
      /THREADMILL_DEPLOY_PROCESS=auto.*Deployments of different workspaces would not be isolated/,
    );
  });

  it("ends with the second workspace, too, where all deployments are one user", async () => {
    await open({ deploy_user: { name: "nobody" } });
    expect((await build()).artifact).not.toBe("");
    for (const name of ["one", "two"])
      await world.database.write((tx) => insertWorkspace(tx, { tenant_id: randomUUID(), name }));
    await expect(build()).rejects.toThrow(
      isRoot ? /all deployments run as the user nobody/ : /the service is not running as root/,
    );
  });

  it("continues if the operator has configured it", async () => {
    await open({ data_dir: closed(), deploy_process: "on" });
    for (const name of ["one", "two"])
      await world.database.write((tx) => insertWorkspace(tx, { tenant_id: randomUUID(), name }));
    expect((await build()).artifact).not.toBe("");
  });

  it("can be switched off", async () => {
    await open({ deploy_process: "off" });
    await expect(build()).rejects.toThrow("THREADMILL_DEPLOY_PROCESS=off");
  });
});

describe("THREADMILL_DEPLOY_USER", () => {
  const readDeployUser = (text?: string) => deploymentSettings.deploy_user.read(text, "THREADMILL_DEPLOY_USER");

  it("is a range of numbers or a name", () => {
    expect(readDeployUser()).toEqual(RANGE);
    expect(readDeployUser("1000-1000")).toEqual({ from: 1000, to: 1000 });
    expect(readDeployUser("nobody")).toEqual({ name: "nobody" });
  });
  it.each(["root", "0", "0-5", "5-1", "a b", "-x", "65534"])("is not %s", (text) => {
    expect(() => readDeployUser(text)).toThrow("THREADMILL_DEPLOY_USER must be");
  });
});
