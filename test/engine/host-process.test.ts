import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import type { FromHost, HostSetup } from "../../src/agent-server/graph-hosts/host.ts";
import { HostProcess } from "../../src/agent-server/graph-hosts/python/host-process.ts";
import { createProject } from "../support/project.ts";

/** Sends a message, and is killed. `ended` has no writer any more when the connection is closed. */
const HOST = `#!/bin/sh
exec 9>ended
printf '[{"type":"started","run_id":"r","epoch":1}]\\n' >&3
kill -9 $$
`;

it("a Python host that is killed has its last messages read, even after a message to it has failed", async () => {
  const project = createProject({ host: HOST });
  execFileSync("chmod", ["+x", "host"], { cwd: project.folder });
  execFileSync("mkfifo", ["ended"], { cwd: project.folder });
  const interpreter = { path: `${project.folder}/host` } as HostProcess["interpreter"];
  const host = new HostProcess(interpreter, { env: {}, project_dir: project.folder } as unknown as HostSetup);
  const received: FromHost[] = [];
  host.onMessage = (message) => received.push(message);
  // Blocks this thread: it writes before it reads.
  execFileSync("cat", ["ended"], { cwd: project.folder });
  host.send([{ type: "ping", id: 1 }]);
  expect(await host.exited).toContain("SIGKILL");
  expect(received).toEqual([{ type: "started", run_id: "r", epoch: 1 }]);
  project.drop();
});
