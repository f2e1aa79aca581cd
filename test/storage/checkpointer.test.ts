import * as vitest from "vitest";
import { HostCheckpointer } from "../../src/graphs/inside/checkpointer.ts";
import { ServiceConnection } from "../../src/graphs/inside/connection.ts";
import { serveCheckpoints } from "../support/checkpoints.ts";
import { databases } from "../support/databases.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";

// LangGraph's own validation suite expects the test functions as globals.
Object.assign(globalThis, vitest);
const { deltaChannelHistoryTests, validate } = await import("@langchain/langgraph-checkpoint-validation");

for (const name of databases) {
  const opened = new Map<HostCheckpointer, TestStorage>();
  const initializer = {
    checkpointerName: `the checkpointer on ${name}`,
    async createCheckpointer() {
      const storage = await openTestStorage(name);
      const connection: ServiceConnection = new ServiceConnection((messages) =>
        messages.forEach((message) => void serveCheckpoints(storage.database, message, connection)),
      );
      const checkpointer = new HostCheckpointer(connection);
      opened.set(checkpointer, storage);
      return checkpointer;
    },
    async destroyCheckpointer(checkpointer: HostCheckpointer) {
      await opened.get(checkpointer)?.close();
    },
  };
  validate(initializer as never);
  deltaChannelHistoryTests(initializer as never);
}
