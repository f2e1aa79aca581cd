import { sql } from "kysely";
import { REVISION_TRANSITIONS } from "../../src/control-plane/rollout/revision-transitions.ts";
import type { World } from "./world.ts";

/** Triggers that write down every change of a status, and of what serves, whoever makes it. */
const TRIGGERS: Record<"sqlite" | "postgres", string[]> = {
  sqlite: [
    `create trigger log_insert after insert on revisions begin
      insert into moves (revision, before, after) values (new.revision_id, null, new.status); end`,
    `create trigger log_update after update on revisions when old.status <> new.status begin
      insert into moves (revision, before, after) values (new.revision_id, old.status, new.status); end`,
    `create trigger log_active after update on deployments
      when new.active_revision_id is not old.active_revision_id begin
      insert into moves (revision, before, after) values (new.active_revision_id, null, 'active'); end`,
  ],
  postgres: [
    `create function log_move() returns trigger language plpgsql as $$ begin
      if tg_op = 'INSERT' then insert into moves (revision, before, after) values (new.revision_id, null, new.status);
      elsif old.status <> new.status then
        insert into moves (revision, before, after) values (new.revision_id, old.status, new.status);
      end if; return null; end $$`,
    `create function log_active() returns trigger language plpgsql as $$ begin
      if new.active_revision_id is distinct from old.active_revision_id then
        insert into moves (revision, before, after) values (new.active_revision_id, null, 'active');
      end if; return null; end $$`,
    "create trigger log_moves after insert or update on revisions for each row execute function log_move()",
    "create trigger log_actives after update on deployments for each row execute function log_active()",
  ],
};

const KEY = {
  sqlite: "integer primary key autoincrement",
  postgres: "bigint generated always as identity primary key",
};

/** A change of a status; after `active`, a change of what serves. */
export interface Move {
  revision: string;
  before: string | null;
  after: string;
}

export async function recordTransitions(world: World): Promise<void> {
  const { name } = world.database.read.dialect;
  await world.execute(`create table moves (n ${KEY[name]}, revision text, before text, after text)`);
  for (const statement of TRIGGERS[name]) await world.execute(statement);
}

export const recordedTransitions = ({ database: { read } }: World): Promise<Move[]> =>
  read.all(sql<Move>`select revision, before, after from moves order by n`.$castTo<Move>().compile(read.k));

/** Moves that the table does not have; and what serves changes with the end of a roll-out, and at no other time. */
export const forbiddenTransitions = (moves: readonly Move[]): Move[] =>
  moves.filter(({ revision, before, after }, n) => {
    if (after !== "active") return !REVISION_TRANSITIONS.some(({ from, to }) => from === before && to === after);
    const last = moves[n - 1];
    return !(last?.revision === revision && last.before === "DEPLOYING" && last.after === "DEPLOYED");
  });
