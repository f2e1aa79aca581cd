import { closeSync, openSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startHeartbeat } from "../../src/control-plane/drivers/process/heartbeat.ts";
import { until } from "../support/until.ts";
import { AGENT, PROJECT } from "./deployed-project.ts";
import { DeployedService } from "./deployed-service.ts";

/** An agent that leaves a program running, which belongs to its instance. */
const SPAWNING = {
  ...PROJECT,
  "agent.mjs": AGENT.replace(
    "const State",
    `import { spawn } from "node:child_process"; const child = spawn("sleep", ["600"]).pid; const State`,
  ).replace("{ env:", "{ child, env:"),
};

/** Instances were found that still served after `dev` had been stopped and its data folder deleted. */
describe("an instance of a deployment", () => {
  let service: DeployedService;
  let running: number[] = [];
  const start = async (command: "dev" | "serve", orphan_s: number) => {
    service = await DeployedService.start("sqlite", { THREADMILL_DEPLOY_ORPHAN_TIMEOUT: `${orphan_s}s` }, command);
    await service.becomes(await service.deploy(SPAWNING), "DEPLOYED");
    running = await pids();
  };
  /** Of the instance, and of what it has started. */
  const pids = async (): Promise<number[]> => {
    const input = { assistant_id: "agent", input: {} };
    const { answer } = (await service.call("POST", "/deployments/mine/runs/wait", input)) as {
      answer: { pid: number; child: number };
    };
    return [answer.pid, answer.child];
  };
  const haveEnded = () => until("the instance has ended", async () => running.every((pid) => !isRunning(pid)));
  const folder = () => join(service.database.data_dir, "control");
  /** What the instance writes, also once its file is deleted. */
  const openLog = () => {
    const [name = ""] = readdirSync(join(folder(), "logs")).filter((file) => file.endsWith(".log"));
    const log = openSync(join(folder(), "logs", name), "r");
    return () => {
      const text = readFileSync(log, "utf8");
      closeSync(log);
      return text;
    };
  };
  afterEach(async () => {
    for (const pid of running) if (isRunning(pid)) process.kill(pid, "SIGKILL");
    await service.close();
  }, 180_000);

  it("ends with `dev`, and starts again with it", async () => {
    await start("dev", 600);
    await service.stop("SIGINT");
    expect(running.filter(isRunning)).toEqual([]);
    await service.start();
    // Of the instance itself: the router knows from before that there was one, until it is found to be gone.
    await service.holds("it serves", async () => (await service.send("GET", "/deployments/mine/info")).ok);
    running = await pids();
  });

  it("outlives `serve`, whose next process finds it", async () => {
    await start("serve", 600);
    await service.stop();
    expect(running.filter(isRunning)).toEqual(running);
    await service.start();
    await service.holds("it serves", async () => (await service.send("GET", "/deployments/mine/ok")).ok);
    expect(await pids()).toEqual(running);
  });

  it("exits gracefully when its data folder is deleted", async () => {
    await start("serve", 12);
    const log = openLog();
    await service.stop("SIGKILL");
    rmSync(service.database.data_dir, { recursive: true });
    await haveEnded();
    expect(log()).toMatch(/control\/.* was deleted/);
  });

  it("exits gracefully when no control plane returns in time", async () => {
    await start("serve", 2);
    const log = openLog();
    await service.stop("SIGKILL");
    await haveEnded();
    expect(log()).toContain("for 2 s, no control plane has updated the heartbeat file");
  });

  it("continues as long as any control plane uses its data folder", async () => {
    await start("serve", 2);
    const file = join(folder(), "heartbeat");
    const another = startHeartbeat(file, 2_000);
    await service.stop("SIGKILL");
    const stopped_at = Date.now();
    await until("twice the limit is over", async () => statSync(file).mtimeMs > stopped_at + 4_000);
    expect(running.filter(isRunning)).toEqual(running);
    another.stop();
    await haveEnded();
  });
});

function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
