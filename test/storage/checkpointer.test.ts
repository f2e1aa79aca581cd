import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import * as vitest from "vitest";
import { createCheckpointer } from "../../src/graphs/inside/checkpointer.ts";
import { ServiceConnection } from "../../src/graphs/inside/connection.ts";
import { Libraries } from "../../src/graphs/inside/library.ts";
import { serveCheckpoints } from "../support/checkpoints.ts";
import { databases } from "../support/databases.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";

// LangGraph's own validation suite expects the test functions as globals.
Object.assign(globalThis, vitest);
const { deltaChannelHistoryTests, validate } = await import("@langchain/langgraph-checkpoint-validation");

const library = await new Libraries().of(import.meta.url);

for (const name of databases) {
  const opened = new Map<BaseCheckpointSaver<string>, TestStorage>();
  const initializer = {
    checkpointerName: `the checkpointer on ${name}`,
    async createCheckpointer() {
      const storage = await openTestStorage(name);
      const connection: ServiceConnection = new ServiceConnection((messages) =>
        messages.forEach((message) => void serveCheckpoints(storage.database, message, connection)),
      );
      const checkpointer = createCheckpointer(library, connection);
      opened.set(checkpointer, storage);
      return checkpointer;
    },
    async destroyCheckpointer(checkpointer: BaseCheckpointSaver<string>) {
      await opened.get(checkpointer)?.close();
    },
  };
  validate(initializer as never);
  deltaChannelHistoryTests(initializer as never);
}
