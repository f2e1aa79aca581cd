import type { Migration } from "../../../platform/database/migrate.ts";

/** Newer versions of LangGraph rebuild channel values from writes, in the order of their tasks' paths. */
export const taskPaths: Migration = {
  name: "009-task-paths",
  statements: () => ["alter table checkpoint_writes add column task_path text not null default ''"],
};
