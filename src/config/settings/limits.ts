import { ConfigError } from "../../platform/errors.ts";
import { integer, list, setting, size } from "./setting.ts";

const count = integer(1, 1_000_000);
const bytes = size(1024, 1_000_000_000_000);
const weight = integer(1, 1_000);

const weights = (value: string, name: string): Record<string, number> =>
  Object.fromEntries(
    list(value, name).map((pair) => {
      const [, workspace, number] = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})=(.*)$/i.exec(pair) ?? [];
      if (!workspace)
        throw new ConfigError(
          `${name} must be <workspace id>=<number> pairs separated by commas, but contains "${pair}".`,
        );
      return [workspace.toLowerCase(), weight(number as string, `A weight in ${name}`)];
    }),
  );

/** Limits for each user or workspace. Requests beyond them are rejected with status 429. */
export const limitSettings = {
  max_open_per_user: setting("THREADMILL_MAX_OPEN_PER_USER", count, {
    default: "2000",
    meaning:
      "Maximum number of open streams and of requests that are waiting for a result. They are counted together, separately for each user and process. The limit applies to callers with a JWT or with a key in the database, and to users of an authentication module. It does not apply to callers with a key from `API_KEYS`, or to a service without authentication.",
  }),
  max_open_per_workspace: setting("THREADMILL_MAX_OPEN_PER_WORKSPACE", count, {
    meaning: "Like `THREADMILL_MAX_OPEN_PER_USER`, but for all users of a workspace together.",
  }),
  max_upload_per_user: setting("THREADMILL_MAX_UPLOAD_PER_USER", bytes, {
    meaning:
      "Maximum total size of request bodies per minute, counted separately for each user and process. The limit applies to the same callers as `THREADMILL_MAX_OPEN_PER_USER`. While it is exceeded, requests with a body are rejected. Source archives of deployments do not count.",
  }),
  max_upload_per_workspace: setting("THREADMILL_MAX_UPLOAD_PER_WORKSPACE", bytes, {
    meaning: "Like `THREADMILL_MAX_UPLOAD_PER_USER`, but for all users of a workspace together.",
  }),
  max_pending_runs: setting("THREADMILL_MAX_PENDING_RUNS", count, {
    meaning:
      "Maximum number of pending runs in a workspace, including runs scheduled for a later time. When the maximum is reached, requests that create runs are rejected, and crons skip their runs. On Postgres, concurrent requests can exceed the maximum by a few runs.",
  }),
  max_pending_runs_per_user: setting("THREADMILL_MAX_PENDING_RUNS_PER_USER", count, {
    meaning:
      "Like `THREADMILL_MAX_PENDING_RUNS`, but for each user. All callers of a service without authentication count as one user, and so do all callers with a key from `API_KEYS`.",
  }),
  max_running_runs: setting("THREADMILL_MAX_RUNNING_RUNS", count, {
    meaning:
      "Maximum number of runs of a workspace that are executed at the same time, by all processes together. Further runs stay pending. With this limit, workspaces take turns in the order of their IDs.",
  }),
  max_running_runs_per_user: setting("THREADMILL_MAX_RUNNING_RUNS_PER_USER", count, {
    meaning:
      "Like `THREADMILL_MAX_RUNNING_RUNS`, but for each user. The next run of a workspace is its oldest pending run whose user is below the limit.",
  }),
  workspace_weights: setting("THREADMILL_WORKSPACE_WEIGHTS", weights, {
    meaning:
      "Comma-separated weights of workspaces, each as `<workspace id>=<number>`. A workspace that is not listed has the weight 1. With this setting, workspaces with pending runs take turns in the order of their IDs. On each turn, a workspace starts at most as many runs as its weight.",
  }),
  max_deployments: setting("THREADMILL_MAX_DEPLOYMENTS", count, {
    meaning: "Maximum number of deployments in a workspace, except those that are being deleted.",
  }),
};
