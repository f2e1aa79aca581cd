import { join } from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Hosts on the serving thread load graphs by way of Vite here, which asks no hook of Node's.
  resolve: { alias: { "threadmill/graph": join(import.meta.dirname, "src/graphs/author/get-token.ts") } },
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    // The suites start servers and databases of their own: more at a time than cores only makes them wait.
    maxWorkers: 2,
    // A machine of CI may take three times as long as a desk.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    globalSetup: ["test/support/global-setup.ts"],
  },
});
