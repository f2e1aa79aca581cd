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
// Keeps V8's young generation small while modules load, because V8 never shrinks it. This saves 25 MB in an idle service.
// src/cli/serve.ts restores the default growth factor after startup.
v8.setFlagsFromString("--semi-space-growth-factor=1");
// A repository checkout runs the TypeScript source. The npm package runs the compiled code.
const source = new URL("../src/cli/main.ts", import.meta.url);
const { runCli } = await import(
  existsSync(source) ? source.href : new URL("../dist/cli/main.js", import.meta.url).href
);
await runCli(process.argv);
