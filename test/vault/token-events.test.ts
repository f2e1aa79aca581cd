import { describe, expect, it } from "vitest";
import { insertTokenEvents } from "../../src/access/storage/token-events.ts";
import { tokenEventRetention } from "../../src/access/tokens/token-events.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { openTestStorage } from "../support/storage.ts";
import { until } from "../support/until.ts";

const SECOND = 1000;

describe.each(databases)("events of OAuth tokens on %s", (name) => {
  it("are deleted when their retention period has passed, and not before", async () => {
    const { database, close } = await openTestStorage(name);
    const ages_s = { old: 3600, older: 7200, young: 5 };
    const event = (event_id: string) => ({
      event_id,
      tenant_id: "t",
      user_id: "u",
      provider_id: "github",
      agent_id: null,
      event_type: "token_deleted",
      reason: null,
      source: "api",
      provider_account_label: null,
      scopes: "[]",
      detail: null,
    });
    const events = Object.keys(ages_s).map((id) => event(id));
    await database.write((tx) => insertTokenEvents(tx, [...events, event(newId())]));
    for (const [event_id, age_s] of Object.entries(ages_s))
      await database.write((tx) =>
        tx.run(
          tx.k
            .updateTable("oauth_token_events")
            .set({ created_at: Date.now() - age_s * SECOND })
            .where("event_id", "=", event_id),
        ),
      );
    const idsOf = async () =>
      (await database.read.all(database.read.k.selectFrom("oauth_token_events").select("event_id"))).map(
        ({ event_id }) => event_id,
      );
    const settings = {
      flow_ttl_ms: 1,
      refresh_skew_ms: 1,
      provider_timeout_ms: 1,
      poll_ms: 1,
      token_event_retention_ms: 1800 * SECOND,
    };
    const service = tokenEventRetention({ database, log: createLog("silent"), settings }, 20);
    service.start();
    await until("the old ones are gone", async () => (await idsOf()).length === 2);
    expect(await idsOf()).toContain("young");
    await service.stop();
    await close();
  });
});
