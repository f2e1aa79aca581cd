#!/usr/bin/env node
import { existsSync } from "node:fs";
import module from "node:module";
import v8 from "node:v8";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 16)) {
  console.error(`Threadmill needs Node.js 22.16 or newer, but this is ${process.versions.node}.`);
  process.exit(2);
}
module.enableCompileCache?.();
// Loading modules makes V8 grow its young generations, which it never shrinks again: 25 MB of an idle service. They stay
// as they are until everything is loaded (src/cli/serve.ts).
v8.setFlagsFromString("--semi-space-growth-factor=1");
// In the repository the source runs as it is; the package brings it compiled.
const source = new URL("../src/cli/main.ts", import.meta.url);
const { runCli } = await import(
  existsSync(source) ? source.href : new URL("../dist/cli/main.js", import.meta.url).href
);
await runCli(process.argv);
