/** The errors of the API: code, HTTP status and message, with `{placeholders}` for details. docs/errors.md has the same rows. */
export const ERRORS = {
  invalid_request: [422, "{reason}"],
  invalid_command: [400, "{reason}"],
  websocket_required: [426, "Open a WebSocket at this path, or send a POST request for server-sent events."],
  body_too_large: [413, "The request body is larger than {limit_bytes} bytes."],
  unsupported_media_type: [415, "A request from a web page must have the content type application/json."],
  unauthorized: [401, "A valid API key or JWT is required as a bearer token, or a valid API key in X-Api-Key."],
  access_ended: [401, "{reason}"],
  too_many_open: [
    429,
    "The user {user_id} has reached the limit of {max} open streams and requests that are waiting for a result: close some of them, or raise THREADMILL_MAX_OPEN_PER_USER.",
  ],
  too_many_open_in_workspace: [
    429,
    "The workspace has reached the limit of {max} open streams and requests that are waiting for a result: close some of them, or raise THREADMILL_MAX_OPEN_PER_WORKSPACE.",
  ],
  upload_limit_reached: [
    429,
    "{sender} has reached the limit of {max} bytes of request bodies per minute: wait, or raise {setting}.",
  ],
  too_many_pending: [
    429,
    "{owner} has reached the limit of {max} pending runs: try again when some of them have started, or raise {setting}.",
  ],
  too_many_deployments: [
    429,
    "The workspace has reached the limit of {max} deployments: delete one of them, or raise THREADMILL_MAX_DEPLOYMENTS.",
  ],
  auth_refused: [401, "{reason}"],
  encryption_context_invalid: [
    422,
    "The header X-Encryption-Context must be a base64-encoded JSON object of at most {limit} characters.",
  ],
  encryption_failed: [422, "The encryption module of the project failed: {reason} See the server's log for details."],
  auth_failed: [500, "The authentication module of the project failed. See the server's log for details."],
  missing_scope: [403, "The API key or JWT does not have the required scope {scope}."],
  workspace_forbidden: [403, "The caller has no access to the workspace in X-Tenant-Id: change or omit the header."],
  workspace_needed: [
    403,
    "The caller belongs to several workspaces, so the request requires workspace specification: send the workspace ID in X-Tenant-Id.",
  ],
  no_workspace: [
    403,
    "The caller is not a member of any workspace. Ask an administrator to add the caller to a workspace.",
  ],
  metrics_forbidden: [403, "Only administrators of the default workspace can read the metrics."],
  operator_needed: [403, "Only administrators of the default workspace can create workspaces."],
  api_key_not_found: [404, "API key not found"],
  workspace_not_found: [404, "Workspace not found"],
  workspace_exists: [409, "Workspace already exists: the ID or name is already in use."],
  member_not_found: [404, "Member not found"],
  forbidden_host: [403, 'The Host "{host}" is not permitted: use localhost, or add the name to ALLOWED_HOSTS.'],
  route_not_found: [404, "Route {method} {path} not found."],
  worker_route: [
    404,
    'This process has the role "worker" and serves only GET {prefix}/ok and GET {prefix}/metrics: send {method} {path} to a process with the role "api" or "all".',
  ],
  assistant_not_found: [404, "Assistant not found"],
  no_such_assistant: [
    404,
    'No assistant found for "{assistant_id}". Make sure the assistant ID is for a valid assistant or a valid graph ID.',
  ],
  assistant_without_messages: [
    404,
    'The assistant "{assistant_id}" cannot be used with A2A: the input of its graph has no messages field.',
  ],
  graph_not_found: [404, 'Graph "{graph_id}" not found. Graphs of this project: {graphs}.'],
  graph_unavailable: [422, 'The graph "{graph_id}" could not be loaded: {reason}'],
  assistant_exists: [409, "Assistant already exists"],
  assistant_is_default: [409, 'Assistant "{assistant_id}" is the default assistant of a graph and cannot be deleted.'],
  version_not_found: [404, "Assistant {assistant_id} has no version {version}."],
  thread_not_found: [404, "Thread with ID {thread_id} not found"],
  thread_exists: [409, "Thread already exists"],
  thread_busy: [409, "Thread is busy with a running job. Cancel it or wait for it to end."],
  copy_source_not_found: [409, "Thread with ID {thread_id} not found, so it cannot be copied."],
  thread_without_graph: [
    400,
    "Thread {thread_id} has no graph ID: run an assistant on it first, or set its metadata.graph_id with PATCH.",
  ],
  thread_is_running: [
    409,
    "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.",
  ],
  state_changed: [409, "The state of thread {thread_id} has changed since it was read. Read it again and retry."],
  checkpoint_not_found: [404, "Thread {thread_id} has no checkpoint {checkpoint_id}."],
  run_not_found: [404, "Run not found"],
  webhook_not_found: [404, "Run {run_id} has no webhook delivery."],
  webhook_delivered: [
    409,
    "The webhook of run {run_id} was already delivered and cannot be sent again: its content is no longer stored.",
  ],
  cron_not_found: [404, "Cron {cron_id} not found"],
  trace_not_found: [404, "Trace not found"],
  share_not_found: [404, "Share not found"],
  share_exists: [409, "The share token is already in use: choose another token."],
  run_ended: [409, "Run {run_id} has ended: its status is {status}. Only a pending or running run can be cancelled."],
  run_active: [409, "Run {run_id} is {status}. Cancel it, or wait for it to end, before you delete it."],
  app_failed: [502, "The HTTP app of the project failed. {reason}"],
  ui_not_found: [404, 'UI components "{namespace}" not found: add them to "ui" in langgraph.json.'],
  ui_file_not_found: [404, 'The UI components "{namespace}" have no file "{file}".'],
  ui_failed: [502, "The UI components could not be built: {reason}"],
  language_mismatch: [
    409,
    'The state of this thread was written by a {written} graph, but "{graph_id}" is a {language} graph. Use a new thread.',
  ],
  graph_failed: [422, "The graph's code failed: {reason}"],
  dataset_not_found: [404, "Dataset not found"],
  dataset_exists: [409, "Dataset already exists: {field} is already in use."],
  dataset_mismatch: [
    409,
    'dataset_id {dataset_id} belongs to the dataset "{name}", not "{dataset_name}". Send only the ID or only the name.',
  ],
  dataset_not_managed: [
    400,
    'The dataset "{name}" was not created by uploading results and does not accept uploads. Use another dataset_id or dataset_name.',
  ],
  dataset_is_managed: [
    400,
    'The dataset "{name}" contains only examples from uploaded results: upload results to add examples.',
  ],
  dataset_without_schemas: [
    400,
    'The dataset "{name}" contains examples from uploaded results, which are not validated against schemas: omit the schemas.',
  ],
  dataset_version_not_found: [404, "Dataset version not found: {reason}."],
  example_not_found: [404, "Example not found"],
  example_exists: [409, "Example already exists: the ID {example_id} is already in use."],
  session_not_found: [404, "Session not found"],
  session_exists: [409, "Session already exists."],
  experiment_expires: [
    400,
    'The traces of an experiment are its results and do not expire: omit trace_tier, or set it to "longlived".',
  ],
  session_elsewhere: [
    400,
    "Session {session_id} has no dataset, belongs to another dataset, or is not one of the sessions that this request compares.",
  ],
  feedback_not_found: [404, "Feedback not found"],
  feedback_exists: [409, "Feedback already exists: the ID {feedback_id} is already in use."],
  attachment_link_expired: [
    410,
    "The link to the attachment has expired. Read the run or the example again for a new link.",
  ],
  feedback_token_not_found: [404, "The feedback token is unknown or has expired. Request a new token."],
  feedback_config_not_found: [404, "Feedback config not found"],
  feedback_config_exists: [
    409,
    'The feedback key "{key}" already has a different config. Use PATCH to change the config.',
  ],
  comparative_not_found: [404, "Comparative experiment not found"],
  comparative_exists: [409, "Comparative experiment already exists: the ID {id} is already in use."],
  annotation_queue_not_found: [404, "Annotation queue not found"],
  annotation_queue_exists: [409, "Annotation queue already exists: the ID {queue_id} is already in use."],
  annotation_queue_item_not_found: [404, "Run not found in the annotation queue"],
  queued_run_not_found: [404, "Run {run_id} not found: only stored runs can be added to a queue."],
  prompt_not_found: [404, "Prompt not found"],
  prompt_exists: [409, 'Prompt already exists: the name "{name}" is already in use.'],
  commit_not_found: [
    404,
    'Commit "{commit}" not found in the prompt "{name}". A hash prefix is also rejected if it matches several commits: use the full hash.',
  ],
  parent_not_latest: [
    409,
    'parent_commit must be {latest}, the latest commit of the prompt "{name}", but is {parent}. Pull the prompt, then commit again.',
  ],
  nothing_to_commit: [409, "Nothing to commit: prompt has not changed since latest commit"],
  prompt_tag_not_found: [404, 'Tag "{tag}" not found'],
  not_offered: [404, "{feature} is not supported. {instead}"],
  price_not_found: [404, "Price not found"],
  price_exists: [
    409,
    'The price "{name}" already exists with this pattern, path, provider and start time: update the existing price.',
  ],
  too_many_prices: [400, "The workspace has reached the limit of {max} prices: delete some of them."],
  bad_trace_body: [400, "{reason}"],
  bad_dotted_order: [400, "{reason}"],
  unsupported_encoding: [
    415,
    'The content encoding "{encoding}" is not supported: use gzip or zstd, or send the body uncompressed.',
  ],
  bad_filter: [400, "{reason}"],
  bad_cursor: [400, "The cursor is invalid: request the first page again."],
  oauth_provider_not_found: [404, "OAuth provider '{provider_id}' not found"],
  oauth_provider_exists: [409, "OAuth provider '{provider_id}' already exists"],
  oauth_token_not_found: [404, "OAuth token not found"],
  connection_not_found: [404, "Agent connection not found"],
  not_found: [404, "Not Found"],
  method_not_allowed: [405, "Method Not Allowed"],
  flow_not_open: [
    400,
    "This authorization cannot be completed: it was already used, was cancelled, has expired, or belongs to another user. Start a new authorization.",
  ],
  flow_failed: [400, 'The authorization at "{provider_id}" failed: {reason}. Start a new authorization.'],
  no_public_url: [
    400,
    "The public URL of this server cannot be determined: set THREADMILL_PUBLIC_URL or, for an existing provider, default_redirect_uri.",
  ],
  redirect_uri_not_allowed: [
    400,
    'The redirect URI {uri} is not in the allowed_redirect_uris of OAuth provider "{provider_id}". Add the URI, or use another URI.',
  ],
  discovery_failed: [400, "The OAuth provider of the MCP server could not be discovered: {reason}"],
  provider_unavailable: [
    503,
    'The token for "{provider_id}" has expired and could not be refreshed: {reason}. Try again.',
  ],
  deployment_not_found: [404, "Deployment ID {deployment_id} not found."],
  deployment_exists: [
    400,
    'A deployment named "{name}" already exists: choose another name, or update the existing deployment with PATCH.',
  ],
  deployment_is_deleted: [
    400,
    'The deployment "{name}" is being deleted. Wait until the deletion is complete, then use the name again.',
  ],
  immutable_source_config: [
    400,
    "These fields of source_config cannot be changed after a deployment is created: {fields}. Create another deployment.",
  ],
  bad_source: [400, "{reason}"],
  bad_secrets: [400, "{reason}"],
  reserved_secrets: [400, "These names are reserved and cannot be used for secrets: {names}. Rename or remove them."],
  revision_not_found: [404, "Revision ID {revision_id} not found."],
  revision_not_redeployable: [400, "Revision {revision_id} cannot be redeployed: {reason}"],
  revision_ended: [400, "Revision {revision_id} cannot be interrupted: it has already finished with status {status}."],
  push_token_source: [400, "Push tokens are only available for 'internal_docker' source deployments."],
  no_registry: [
    400,
    "This service has no image registry: push the image to your own registry, and set source_revision_config.image_uri with PATCH.",
  ],
  upload_refused: [403, "The upload URL is unknown, was already used, or has expired: request a new URL."],
  upload_incomplete: [
    400,
    "The upload is incomplete: {size_bytes} of {declared_bytes} bytes were received, and nothing was stored. Upload the tarball again.",
  ],
  listener_not_found: [404, "Listener ID {listener_id} not found."],
  listener_exists: [
    409,
    "Listener for LangSmith workspace ID '{workspace_id}' and compute ID '{compute_id}' already exists.",
  ],
  no_instance: [
    503,
    'No instance of the deployment "{slug}" is ready. Check the status and the logs of the deployment, then try again.',
  ],
  instance_ended: [
    502,
    'The instance of the deployment "{slug}" stopped before it responded. The request may have been partially processed: check its effects before you retry.',
  ],
  forbidden_worker: [
    403,
    "Service workers of a deployment require a separate host name: use {slug}.localhost, or set THREADMILL_DEPLOYMENTS_DOMAIN.",
  ],
  forbidden_origin: [
    403,
    "Web pages from {origin} are not allowed to use this route: add the origin to CORS_ALLOW_ORIGINS. If authentication is disabled, this setting applies only to the routes of agents and experiments. For all other routes, also configure API keys.",
  ],
  disk_full: [507, "The database's disk is full, so nothing was stored. Free disk space, then try again."],
  unavailable: [503, "{reason}"],
  internal: [500, "Internal server error. See the server's log for details."],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrorCode = keyof typeof ERRORS;

/** The message is for the caller, the cause for the log. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly code: ErrorCode;
  readonly status: number;
  /** Additional headers of the response. */
  readonly headers: Readonly<Record<string, string>> = {};

  constructor(code: ErrorCode, details: Record<string, unknown> = {}, cause?: unknown) {
    const [status, template] = ERRORS[code];
    const message = template.replaceAll(/\{(\w+)\}/g, (_, name) => String(details[name] ?? ""));
    super(message, { cause });
    this.code = code;
    this.status = status;
  }

  /** Creates an error with a complete message, for example an error that another thread has thrown. */
  static of(code: ErrorCode, message: string, response: Partial<Pick<ApiError, "status" | "headers">> = {}): ApiError {
    return Object.assign(new ApiError(code), { message, ...response });
  }
}

/** A reason for a refused request, with its location: `["body", "results", 3, "start_time"]`. */
export interface InvalidPart {
  loc: (string | number)[];
  msg: string;
  /** FastAPI's error type, such as `missing`. */
  type: string;
  input?: unknown;
  /** The values that the message contains. */
  ctx?: Record<string, unknown>;
}

/** A request that does not match its contract, for APIs that list all reasons. */
export class InvalidRequestError extends Error {
  override name = "InvalidRequestError";
  readonly parts: InvalidPart[];

  constructor(parts: InvalidPart[]) {
    super(parts.map(({ loc, msg }) => `${loc.join(".")}: ${msg}`).join("; "));
    this.parts = parts;
  }
}

/** An error that the operator can correct, such as an invalid setting. The message says how. The program exits with status 2. */
export class ConfigError extends Error {}

export class LeaseLostError extends Error {
  override name = "LeaseLostError";

  constructor(run_id: string) {
    super(`This worker no longer holds the lease on run ${run_id}, so nothing was written.`);
  }
}
