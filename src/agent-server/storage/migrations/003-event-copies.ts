import type { Migration } from "../../../platform/database/migrate.ts";

/**
 * Delta events consist of any number of copies instead of a prefix and a suffix. Existing delta events, which would have expired within an
 * hour, become gap events.
 */
export const eventCopies: Migration = {
  name: "003-event-copies",
  statements: () => [
    `update run_events set event = 'gap', base_seq = null, base_run_id = null,
      data = '{"run_id":"' || run_id || '","after":' || (seq - 1) || ',"until":' || seq ||
        ',"reason":"This event was stored by an older version."}'
      where base_seq is not null`,
    "alter table run_events drop column prefix",
    "alter table run_events drop column suffix",
    "alter table run_events add column copies text",
  ],
};
