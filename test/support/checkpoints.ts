import type { FromHost, HostRequest } from "../../src/agent-server/graph-hosts/host.ts";
import type { ServiceConnection } from "../../src/agent-server/graph-hosts/inside/connection.ts";
import { findCheckpoint, listCheckpoints } from "../../src/agent-server/storage/checkpoints/checkpoints.ts";
import { insertCheckpoint, insertWrites } from "../../src/agent-server/storage/checkpoints/inserts.ts";
import { deleteThreadState } from "../../src/agent-server/storage/threads.ts";
import type { Database } from "../../src/platform/database/database.ts";

/** The service's side of a checkpointer, without runs and so without a fence. */
export async function serveCheckpoints(
  database: Database,
  message: FromHost,
  connection: ServiceConnection,
): Promise<void> {
  if (message.type !== "request") throw new Error(`unexpected message ${message.type}`);
  try {
    connection.onReply({ type: "reply", id: message.id, value: await carryOut(database, message.request) });
  } catch (error) {
    const { name, message: text } = error as Error;
    connection.onReply({ type: "reply", id: message.id, error: { name, message: text } });
  }
}

const AUTHOR = { tenant_id: "t", run_id: null, epoch: 0, seq: 0 };

function carryOut(database: Database, request: HostRequest): Promise<unknown> {
  switch (request.op) {
    case "get":
      return findCheckpoint(database.read, request);
    case "list":
      return listCheckpoints(database.read, request);
    case "put":
      return database.write((tx) => insertCheckpoint(tx, AUTHOR, request.checkpoint));
    case "put_writes":
      return database.write((tx) => insertWrites(tx, AUTHOR, request, request.writes));
    case "delete_thread":
      return database.write((tx) => deleteThreadState(tx, request.thread_id));
    default:
      throw new Error(`A checkpointer does not ask for ${request.op}.`);
  }
}
