import type { Migration } from "../../../platform/database/migrate.ts";

/**
 * Assistant ids are unique within a workspace: a graph's default assistant has the same id in all workspaces, because clients compute it
 * from the graph's name.
 */
export const assistantsOfWorkspaces: Migration = {
  name: "005-assistants-of-workspaces",
  statements: ({ types }) => [
    "alter table assistants rename to assistants_001",
    `create table assistants (
      assistant_id text not null, tenant_id text not null, graph_id text not null,
      name text not null, description text, config text not null, context text not null, metadata text not null,
      version integer not null, created_at ${types.bigint} not null, updated_at ${types.bigint} not null,
      constraint assistants_key primary key (tenant_id, assistant_id))`,
    `insert into assistants
      select assistant_id, tenant_id, graph_id, name, description, config, context, metadata, version, created_at, updated_at
      from assistants_001`,
    // Also drops the index assistants_by_graph.
    "drop table assistants_001",
    "create index assistants_by_graph on assistants (tenant_id, graph_id)",
    "alter table assistant_versions rename to assistant_versions_001",
    `create table assistant_versions (
      assistant_id text not null, version integer not null, tenant_id text not null, graph_id text not null,
      name text not null, description text, config text not null, context text not null, metadata text not null,
      created_at ${types.bigint} not null,
      constraint assistant_versions_key primary key (tenant_id, assistant_id, version)) ${types.clustered}`,
    `insert into assistant_versions
      select assistant_id, version, tenant_id, graph_id, name, description, config, context, metadata, created_at
      from assistant_versions_001`,
    "drop table assistant_versions_001",
  ],
};
