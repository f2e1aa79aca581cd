import { memberRoles, vault } from "../../access/storage/migrations.ts";
import {
  agentServer,
  assistantsOfWorkspaces,
  eventCopies,
  executingRollout,
  rollback,
  runsOfWorkspaces,
  taskPaths,
} from "../../agent-server/storage/migrations/001-009.ts";
import {
  activeRollout,
  checkpointLanguage,
  columnNames,
  crons,
  cronUsers,
  eventBases,
  projectEncryption,
  pushNotifications,
  queuesOfWorkspaces,
  runsOfUsers,
  store,
  threadTtl,
  traceDeletions,
  webhooks,
} from "../../agent-server/storage/migrations/012-027.ts";
import { controlPlane, deploymentRoles, instanceAuth } from "../../control-plane/storage/migrations.ts";
import { EXPERIMENT_MIGRATIONS } from "../../experiments/storage/migrations.ts";
import type { Migration } from "../../platform/database/migrate.ts";

/** The migrations in the order in which they are applied. On SQLite, each list has its own file. Published migrations must not change. */
export const MIGRATIONS = {
  agents: [
    agentServer,
    rollback,
    eventCopies,
    vault,
    assistantsOfWorkspaces,
    controlPlane,
    executingRollout,
    runsOfWorkspaces,
    taskPaths,
    deploymentRoles,
    memberRoles,
    queuesOfWorkspaces,
    columnNames,
    activeRollout,
    traceDeletions,
    crons,
    store,
    webhooks,
    cronUsers,
    threadTtl,
    pushNotifications,
    instanceAuth,
    checkpointLanguage,
    projectEncryption,
    runsOfUsers,
    eventBases,
  ],
  experiments: EXPERIMENT_MIGRATIONS,
} as const satisfies Record<string, readonly Migration[]>;
