import { vault } from "../../access/storage/migrations/004-vault.ts";
import { memberRoles } from "../../access/storage/migrations/011-member-roles.ts";
import { agentServer } from "../../agent-server/storage/migrations/001-agent-server.ts";
import { rollback } from "../../agent-server/storage/migrations/002-rollback.ts";
import { eventCopies } from "../../agent-server/storage/migrations/003-event-copies.ts";
import { assistantsOfWorkspaces } from "../../agent-server/storage/migrations/005-assistants-of-workspaces.ts";
import { executingRollout } from "../../agent-server/storage/migrations/007-claimant.ts";
import { runsOfWorkspaces } from "../../agent-server/storage/migrations/008-runs-of-workspaces.ts";
import { taskPaths } from "../../agent-server/storage/migrations/009-task-paths.ts";
import { queuesOfWorkspaces } from "../../agent-server/storage/migrations/012-queues-of-workspaces.ts";
import { columnNames } from "../../agent-server/storage/migrations/013-column-names.ts";
import { activeRollout } from "../../agent-server/storage/migrations/015-active-rollout.ts";
import { controlPlane } from "../../control-plane/storage/migrations/006-control-plane.ts";
import { deploymentRoles } from "../../control-plane/storage/migrations/010-deployment-roles.ts";
import { experiments } from "../../experiments/storage/migrations/experiments-001.ts";
import { exampleIndexes } from "../../experiments/storage/migrations/experiments-002.ts";
import { traces } from "../../experiments/storage/migrations/experiments-003.ts";
import type { Migration } from "../../platform/database/migrate.ts";

/** The migrations in their order. SQLite has a file for each series. A published migration never changes. */
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
  ],
  experiments: [experiments, exampleIndexes, traces],
} as const satisfies Record<string, readonly Migration[]>;
