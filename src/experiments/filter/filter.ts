/** What is known of filters stands beside the compiler to SQL; here it has its short name. */
export type {
  Comparator,
  Condition,
  EntryCondition,
  EntryField,
  EntryFilter,
  FeedbackField,
  MetadataField,
  RunField,
  RunFilter as Filter,
  Scalar,
} from "../storage/run-filter.ts";
export { spellingsOf } from "../storage/run-filter.ts";
