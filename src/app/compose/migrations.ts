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
import { traceDeletions } from "../../agent-server/storage/migrations/016-trace-deletions.ts";
import { crons } from "../../agent-server/storage/migrations/017-crons.ts";
import { store } from "../../agent-server/storage/migrations/018-store.ts";
import { webhooks } from "../../agent-server/storage/migrations/019-webhooks.ts";
import { cronUsers } from "../../agent-server/storage/migrations/020-cron-users.ts";
import { threadTtl } from "../../agent-server/storage/migrations/021-thread-ttl.ts";
import { pushNotifications } from "../../agent-server/storage/migrations/022-push-notifications.ts";
import { checkpointLanguage } from "../../agent-server/storage/migrations/024-checkpoint-language.ts";
import { controlPlane } from "../../control-plane/storage/migrations/006-control-plane.ts";
import { deploymentRoles } from "../../control-plane/storage/migrations/010-deployment-roles.ts";
import { instanceAuth } from "../../control-plane/storage/migrations/023-instance-auth.ts";
import { EXPERIMENT_MIGRATIONS } from "../../experiments/storage/migrations/index.ts";
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
  ],
  experiments: EXPERIMENT_MIGRATIONS,
} as const satisfies Record<string, readonly Migration[]>;
