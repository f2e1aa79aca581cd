import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** A Postgres in which test databases may be made; empty when there is none. */
    postgres: string;
    /** Path of a Chromium for the suites of the web app; empty when there is none. */
    chromium: string;
    /** What suites that are written for any database run on. */
    databases: readonly ("sqlite" | "postgres")[];
  }
}

export default async function setup(_project: TestProject): Promise<void> {}
