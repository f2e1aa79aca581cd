import { defineConfig } from "vitest/config";

/** Without the reporter of the client, which needs an older Vitest. */
export default defineConfig({ test: { include: ["*.eval.ts"] } });
