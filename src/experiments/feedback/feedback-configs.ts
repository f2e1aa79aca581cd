import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type { FeedbackConfig } from "../contract/feedback/feedback.ts";
import type {
  KeyConfig,
  KeyConfigCreate,
  KeyConfigQuery,
  KeyConfigUpdate,
} from "../contract/feedback/feedback-configs.ts";
import { deleteConfig, insertConfig, listConfigs, lockConfig, updateConfig } from "../storage/feedback-configs.ts";
import type { FeedbackConfigRow } from "../storage/schema.ts";

/** Operations on feedback configs: the meaning of a key, and whether lower scores are better. */
export const feedbackConfigOperations = ({ read, write }: Database) => ({
  async list({ tenant_id }: Caller, query: KeyConfigQuery): Promise<KeyConfig[]> {
    return query.is_enforced ? [] : (await listConfigs(read, tenant_id, query)).map(toKeyConfig);
  },

  /** Creating an identical config again is not a conflict: clients send the config with each of their runs. */
  async create({ tenant_id }: Caller, body: KeyConfigCreate): Promise<KeyConfig> {
    const row = {
      tenant_id,
      feedback_key: body.feedback_key,
      config: JSON.stringify(body.feedback_config),
      is_lower_score_better: toFlag(body.is_lower_score_better),
    };
    return write(async (tx) => {
      const stored = (await insertConfig(tx, row)) ?? (await lockConfig(tx, tenant_id, row.feedback_key));
      // Null and false both mean that higher is better; the clients always send a value.
      const hasOtherDirection = (stored?.is_lower_score_better ?? 0) !== (row.is_lower_score_better ?? 0);
      if (stored?.config !== row.config || hasOtherDirection)
        throw new ApiError("feedback_config_exists", { key: row.feedback_key });
      return toKeyConfig(stored);
    });
  },

  async update({ tenant_id }: Caller, body: KeyConfigUpdate): Promise<KeyConfig> {
    return write(async (tx) => {
      const before = await lockConfig(tx, tenant_id, body.feedback_key);
      if (!before) throw new ApiError("feedback_config_not_found");
      const config = withCategories(body.feedback_config ?? JSON.parse(before.config), body);
      const changed = await updateConfig(tx, tenant_id, body.feedback_key, {
        config: JSON.stringify(config),
        ...(body.is_lower_score_better !== undefined && { is_lower_score_better: toFlag(body.is_lower_score_better) }),
      });
      if (!changed) throw new ApiError("feedback_config_not_found");
      return toKeyConfig(changed);
    });
  },

  async delete({ tenant_id }: Caller, key: string): Promise<void> {
    const count = await write((tx) => deleteConfig(tx, tenant_id, key));
    if (count === 0) throw new ApiError("feedback_config_not_found");
  },
});

/** For each key without a stored config, stores the first config in `scores`. */
export async function insertMissingConfigs(
  tx: Tx,
  tenant_id: string,
  scores: readonly { key: string; feedback_config?: object | undefined }[],
): Promise<void> {
  const configs = new Map<string, object>();
  for (const { key, feedback_config } of scores)
    if (feedback_config && !configs.has(key)) configs.set(key, feedback_config);
  for (const [feedback_key, config] of configs)
    await insertConfig(tx, { tenant_id, feedback_key, config: JSON.stringify(config), is_lower_score_better: null });
}

/** @throws ApiError when the request adds or removes categories, but the config is not categorical */
function withCategories(config: FeedbackConfig, { add_categories = [], remove_categories = [] }: KeyConfigUpdate) {
  if (add_categories.length === 0 && remove_categories.length === 0) return config;
  if (config.type !== "categorical")
    throw new ApiError("invalid_request", {
      reason: `A ${config.type} feedback config has no categories: omit add_categories and remove_categories.`,
    });
  const replaced = new Set([...remove_categories, ...add_categories.map(({ value }) => value)]);
  const kept = (config.categories ?? []).filter(({ value }) => !replaced.has(value));
  return { ...config, categories: [...kept, ...add_categories] };
}

const toFlag = (value: boolean | null | undefined): number | null =>
  value === undefined || value === null ? null : Number(value);

export function toKeyConfig(row: FeedbackConfigRow): KeyConfig {
  const { type, min, max, categories } = JSON.parse(row.config);
  const labelled = categories?.map(({ value, label }: { value: number; label?: string }) => ({
    value,
    label: label ?? null,
  }));
  return {
    feedback_key: row.feedback_key,
    feedback_config: { type, min: min ?? null, max: max ?? null, categories: labelled ?? null },
    is_lower_score_better: row.is_lower_score_better === null ? null : row.is_lower_score_better === 1,
    tenant_id: row.tenant_id,
    modified_at: isoOfMilliseconds(row.modified_at),
  };
}
