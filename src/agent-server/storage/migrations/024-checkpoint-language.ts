import type { Migration } from "../../../platform/database/migrate.ts";

/** The language of the graph that wrote a checkpoint: LangGraph serializes values differently in each. */
export const checkpointLanguage: Migration = {
  name: "024-checkpoint-language",
  statements: () => ["alter table checkpoints add column language text not null default 'js'"],
};
