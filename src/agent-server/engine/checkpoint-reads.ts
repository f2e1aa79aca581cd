import type { Database } from "../../platform/database/database.ts";
import { withoutDriverText } from "../../platform/lib/unavailable.ts";
import type { HostRequest } from "../graph-hosts/host.ts";
import { findCheckpoint, listCheckpoints } from "../storage/checkpoints.ts";

/**
 * Answers what a host's checkpointer wants to read.
 *
 * @throws DatabaseUnavailableError
 */
export async function readCheckpoints(database: Database, request: HostRequest): Promise<unknown> {
  try {
    return await read(database, request);
  } catch (error) {
    throw withoutDriverText(error);
  }
}

async function read(database: Database, request: HostRequest): Promise<unknown> {
  switch (request.op) {
    case "get":
      return findCheckpoint(database.read, request);
    case "list":
      if (request.thread_id === undefined)
        throw new Error("A graph lists the checkpoints of one thread: name it in the config.");
      return listCheckpoints(request.metadata ? database.search : database.read, request);
    case "token":
      throw new Error("Only a run gets tokens, and this graph is only being read.");
    case "fetch":
      throw new Error("Only a run sends requests to this server, and this graph is only being read.");
    default:
      throw new Error("This graph is only being read: it cannot store checkpoints.");
  }
}
