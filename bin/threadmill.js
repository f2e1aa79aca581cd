#!/usr/bin/env node
import { existsSync } from "node:fs";
import module from "node:module";
import v8 from "node:v8";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 16)) {
  console.error(`Threadmill requires Node.js 22.16 or newer, but this is ${process.versions.node}.`);
  process.exit(2);
}
module.enableCompileCache?.();
// While modules load, V8 grows its young generation and never shrinks it. This costs an idle service 25 MB. src/cli/serve.ts restores
// the default after startup.
v8.setFlagsFromString("--semi-space-growth-factor=1");
// A repository checkout runs the TypeScript source. The npm package runs the compiled code.
const source = new URL("../src/cli/main.ts", import.meta.url);
const { runCli } = await import(
  existsSync(source) ? source.href : new URL("../dist/cli/main.js", import.meta.url).href
);
await runCli(process.argv);
