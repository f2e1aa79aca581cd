/**
 * The suites of the Kubernetes driver against kube-apiserver and kube-controller-manager, which are built once (Debian 12, root).
 *
 * Usage: npm run test:kubernetes [-- VITEST OPTIONS]
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");
/** Outside of node_modules, which `npm ci` removes. */
const PROGRAMS = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "threadmill-tests/kubernetes");
const SUITES = ["test/control/kubernetes-", "test/control/listener"];

function run(command: string, args: string[], env: Record<string, string> = {}): void {
  const { status } = spawnSync(command, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(join(PROGRAMS, "kube-controller-manager"))) {
  console.log(`Kubernetes is built into ${PROGRAMS}, which takes about 6 minutes.`);
  run(join(ROOT, "test/control/kubernetes/build-server.sh"), [PROGRAMS]);
}
const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
const options = ["run", "--mode", "all", "--project", "kubernetes", ...process.argv.slice(2)];
run(process.execPath, [vitest, ...options, ...SUITES], { KUBERNETES_PROGRAMS: PROGRAMS });
