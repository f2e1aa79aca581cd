import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Started, start, stop } from "./processes.ts";

/** The installation of the peer, which is reused by later runs. */
const folder = join(tmpdir(), "threadmill-bench-peer");
export const peerModules = join(folder, "node_modules");

const PACKAGES = {
  "@langchain/langgraph-api": "1.5.1",
  "@langchain/langgraph": "1.4.17",
  "@langchain/core": "1.2.13",
  "@langchain/langgraph-checkpoint": "1.1.5",
  "@langchain/langgraph-sdk": "1.11.2",
};

const TIMEOUT_MS = 5 * 60_000;

/** Environment variables that npm may need to reach its registry. */
const NPM_VARIABLES = /^(npm_config_(registry|cache|userconfig|cafile)|https?_proxy|no_proxy|node_extra_ca_certs)$/i;

/**
 * Installs the peer unless it is installed.
 *
 * @throws Error when the installation fails or times out
 */
export async function installPeer(): Promise<void> {
  if (Object.entries(PACKAGES).every(isInstalled)) return;
  console.log(`Installing the peer into ${folder} (at most ${TIMEOUT_MS / 60_000} minutes) ...`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  const packages = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`);
  const flags = ["install", "--prefix", folder, "--legacy-peer-deps", "--no-audit", "--no-fund"];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => NPM_VARIABLES.test(name))) as Record<
    string,
    string
  >;
  await waitForExit(start([...flags, ...packages], { command: "npm", cwd: folder, env }));
}

async function waitForExit(npm: Started): Promise<void> {
  const started_at = performance.now();
  const timer = setTimeout(() => void stop(npm), TIMEOUT_MS);
  try {
    const [status] = (await once(npm.child, "close")) as [number | null];
    if (status === 0) return;
  } finally {
    clearTimeout(timer);
  }
  if (performance.now() - started_at >= TIMEOUT_MS)
    throw new Error(`npm install took more than ${TIMEOUT_MS / 60_000} minutes.`);
  throw new Error(`npm install failed: ${npm.stderrTail()}`);
}

function isInstalled([name, version]: [string, string]): boolean {
  try {
    const manifest = JSON.parse(readFileSync(join(peerModules, name, "package.json"), "utf8")) as { version: string };
    return manifest.version === version;
  } catch {
    return false;
  }
}
