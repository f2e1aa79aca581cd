import { createHash, randomUUID } from "node:crypto";
import type { Caller } from "../../../platform/contract/caller.ts";
import { type Database, type Tx, writeUnique } from "../../../platform/database/database.ts";
import { ApiError, InvalidRequestError } from "../../../platform/errors.ts";
import { isoOfMicroseconds, microsecondsOf } from "../../../platform/lib/times.ts";
import type { ModelPrice, ModelPriceInput } from "../../contract/traces/prices.ts";
import {
  deletePrice,
  findEqualPrice,
  insertPrice,
  listPrices,
  updatePrice,
} from "../../storage/traces/model-prices.ts";
import type { Pricing } from "../merge-run.ts";
import { loadPrices, MODEL_PATH, type PriceMap, type Prices } from "./prices.ts";

/** A limit per workspace, because each request that stores runs reads all prices of its workspace. */
const MAX_PRICES = 1_000;
const MAX_WORKSPACES = 1_000;

/** The built-in prices and those of each workspace. */
export class PriceMaps {
  #prices: Promise<Prices> | undefined;
  /** Maps by workspace, with the stored entries from which each was built, because another process may change the entries. */
  readonly #maps = new Map<string, { entries: string; map: PriceMap }>();

  prices(): Promise<Prices> {
    this.#prices ??= loadPrices();
    return this.#prices;
  }

  async pricingOf(tx: Tx, tenant_id: string): Promise<Pricing> {
    const prices = await this.prices();
    const rows = await listPrices(tx, tenant_id);
    const entries = rows.map(({ entry }) => entry).join("\n");
    const known = this.#maps.get(tenant_id);
    if (known?.entries === entries) return { prices, map: known.map };
    if (this.#maps.size >= MAX_WORKSPACES) this.#maps.clear();
    const map = prices.mapOf(rows.map(({ entry }) => JSON.parse(entry)));
    this.#maps.set(tenant_id, { entries, map });
    return { prices, map };
  }
}

export const priceOperations = (database: Database, maps: PriceMaps) => {
  const rowOf = async ({ tenant_id }: Caller, price_id: string, input: ModelPriceInput) => {
    const start_us = input.start_time === undefined ? null : microsecondsOf(input.start_time);
    const price: ModelPrice = {
      id: price_id,
      name: input.name,
      match_pattern: input.match_pattern,
      match_path: input.match_path ?? MODEL_PATH,
      prompt_cost: input.prompt_cost,
      completion_cost: input.completion_cost,
      prompt_cost_details: input.prompt_cost_details ?? null,
      completion_cost_details: input.completion_cost_details ?? null,
      provider: input.provider || null,
      start_time: typeof start_us === "number" ? isoOfMicroseconds(start_us) : (input.start_time ?? null),
    };
    const fault = (await maps.prices()).faultOf(price);
    if (fault !== undefined)
      throw new InvalidRequestError([{ loc: ["body"], msg: `Value error, ${fault}`, type: "value_error" }]);
    const { name, match_pattern, match_path, provider, start_time } = price;
    const identity = JSON.stringify([name, match_pattern, match_path, provider, start_time]);
    // A unique index has a limit of 2,700 bytes on Postgres.
    const digest = createHash("sha256").update(identity).digest("base64url");
    return { price, row: { price_id, tenant_id, entry: JSON.stringify(price), identity: digest } };
  };
  return {
    async list({ tenant_id }: Caller): Promise<ModelPrice[]> {
      return (await listPrices(database.read, tenant_id)).map(({ entry }) => JSON.parse(entry));
    },

    async create(caller: Caller, input: ModelPriceInput): Promise<ModelPrice> {
      const { price, row } = await rowOf(caller, randomUUID(), input);
      return database.write(async (tx) => {
        if ((await listPrices(tx, caller.tenant_id)).length >= MAX_PRICES)
          throw new ApiError("too_many_prices", { max: MAX_PRICES });
        if (!(await insertPrice(tx, row))) throw new ApiError("price_exists", price);
        return price;
      });
    },

    async update(caller: Caller, price_id: string, input: ModelPriceInput): Promise<ModelPrice> {
      const { price, row } = await rowOf(caller, price_id, input);
      return writeUnique(database, async (tx) => {
        if (await findEqualPrice(tx, row)) throw new ApiError("price_exists", price);
        if ((await updatePrice(tx, row)) === 0) throw new ApiError("price_not_found");
        return price;
      });
    },

    async delete({ tenant_id }: Caller, price_id: string): Promise<void> {
      const count = await database.write((tx) => deletePrice(tx, tenant_id, price_id));
      if (count === 0) throw new ApiError("price_not_found");
    },
  };
};
