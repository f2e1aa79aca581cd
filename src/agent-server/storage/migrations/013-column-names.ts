import type { Migration } from "../../../platform/database/migrate.ts";

/** Gives two columns descriptive names: the snapshot of a thread before a run, and the status of a thread without active runs. */
export const columnNames: Migration = {
  name: "013-column-names",
  statements: () => [
    "alter table runs rename column thread_before to thread_snapshot",
    "alter table threads rename column rest_status to idle_status",
  ],
};
