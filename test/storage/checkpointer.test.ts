import * as vitest from "vitest";
import { createCheckpointer } from "../../src/agent-server/graph-hosts/inside/checkpointer.ts";
import { ServiceConnection } from "../../src/agent-server/graph-hosts/inside/connection.ts";
import { Libraries } from "../../src/agent-server/graph-hosts/inside/loading/library.ts";
import { serveCheckpoints } from "../support/checkpoints.ts";
import { databases } from "../support/databases.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";

// LangGraph's own validation suite expects the test functions as globals.
Object.assign(globalThis, vitest);
const { deltaChannelHistoryTests, validate } = await import("@langchain/langgraph-checkpoint-validation");

const library = await new Libraries().of(import.meta.url);

for (const name of databases) {
  // One database serves all tests, and is empty at the start of each.
  let storage: TestStorage;
  vitest.beforeAll(async () => {
    storage = await openTestStorage(name);
  });
  vitest.afterAll(() => storage.close());
  const initializer = {
    checkpointerName: `the checkpointer on ${name}`,
    async createCheckpointer() {
      await storage.database.write(async (tx) => {
        for (const table of ["checkpoint_writes", "checkpoint_values", "checkpoints"] as const)
          await tx.run(tx.k.deleteFrom(table));
      });
      const connection: ServiceConnection = new ServiceConnection((messages) =>
        messages.forEach((message) => void serveCheckpoints(storage.database, message, connection)),
      );
      return createCheckpointer(library, connection);
    },
  };
  validate(initializer as never);
  deltaChannelHistoryTests(initializer as never);
}
