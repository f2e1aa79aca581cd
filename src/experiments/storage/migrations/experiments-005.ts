import type { Migration } from "../../../platform/database/migrate.ts";

/**
 * Adds tags of dataset versions and attachments of examples. An attachment belongs to the example versions from `from_version` up
 * to, but not including, `until_version`, so that a new version of an example does not copy the bytes.
 */
export const datasetVersions: Migration = {
  name: "experiments-005",
  statements: ({ types }) => [
    `create table dataset_tags (
      dataset_no ${types.bigint} not null, tag text not null, version_at ${types.bigint} not null,
      primary key (dataset_no, tag))`,
    `create table example_attachments (
      dataset_no ${types.bigint} not null, example_index integer not null, name text not null,
      from_version integer not null, until_version integer, mime_type text not null, token text not null unique,
      data ${types.bytes} not null, primary key (dataset_no, example_index, name, from_version))`,
  ],
};
