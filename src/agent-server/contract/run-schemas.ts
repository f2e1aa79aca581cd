import { z } from "@hono/zod-openapi";
import {
  assistantId,
  checkpointId,
  jsonObject,
  optional,
  repeated,
  searchable,
  uuid,
  withDefault,
} from "../../platform/contract/fields.ts";
import { isObject } from "../../platform/lib/json/json.ts";
import { Config, Durability, MultitaskStrategy, StreamMode } from "./records.ts";

/** The classes `Send` of the official libraries are written as JSON with `args`. */
const send = z
  .preprocess(
    (given) =>
      isObject(given) && given.lg_name === "Send" && !("input" in given) ? { ...given, input: given.args } : given,
    z.object({ node: z.string().min(1), input: withDefault(z.unknown(), null) }),
  )
  .openapi("Send");
const target = z.union([z.string().min(1), send]);

/** Resumes or redirects a graph. Sent instead of an input. A `resume` of null is valid: test for the key with `"resume" in command`. */
export const command = z
  .object({
    resume: z.unknown().optional().openapi({
      description: "The value to resume with, or an object that maps interrupt IDs to values. Null is a valid value.",
    }),
    update: optional(
      z.union(
        [jsonObject, z.array(z.tuple([z.string(), z.unknown()]))],
        "must be an object or a list of [key, value] pairs",
      ),
    ).openapi({ description: "State update to apply: an object, or a list of `[key, value]` pairs." }),
    goto: optional(
      z.union([target, z.array(target)], "must be a node name, {node, input}, or a list of these"),
    ).openapi({
      description: "Nodes to execute next.",
    }),
  })
  .openapi("Command");

/** Clients omit the thread id, because the path contains it. */
export const checkpointRef = z
  .object({
    thread_id: optional(z.string()),
    checkpoint_ns: optional(z.string()),
    checkpoint_id: optional(checkpointId),
    checkpoint_map: optional(jsonObject),
  })
  .openapi("CheckpointRef");
export type CheckpointRef = z.output<typeof checkpointRef>;

/** Effect of a client disconnect on the run. */
export const OnDisconnect = z.enum(["cancel", "continue"]).openapi("OnDisconnect");
export type OnDisconnect = z.infer<typeof OnDisconnect>;

/** Node names, or `*` for every node. */
const nodes = optional(z.union([z.literal("*"), z.array(z.string())], 'must be "*" or a list of node names'));

/** {@link WebhookPolicy} decides which URLs are accepted. */
const webhook = z
  .string()
  .min(1)
  .max(65_536)
  .refine((url) => URL.canParse(url, "http://relative.invalid"), "must be a URL or a path")
  .openapi({
    format: "uri-reference",
    description:
      "URL to which a POST request is sent when the run ends. A path such as `/hook` is a route of the project's HTTP app.",
  });

/** A hundred years, in seconds. An unbounded delay could overflow a Date. */
const MAX_DELAY_S = 100 * 366 * 24 * 3600;

/** Fields of runs on threads and of stateless runs. */
const shared = {
  assistant_id: assistantId,
  input: withDefault(z.unknown(), null).openapi({
    description: "Input of the graph. Null continues from the thread's current state.",
  }),
  command: optional(command),
  metadata: withDefault(searchable, {}),
  config: withDefault(Config, {}),
  context: optional(jsonObject),
  webhook: optional(webhook),
  interrupt_before: nodes,
  interrupt_after: nodes,
  stream_mode: withDefault(repeated(StreamMode), ["values"]),
  stream_subgraphs: withDefault(z.boolean(), false),
  stream_resumable: withDefault(z.boolean(), false),
  feedback_keys: optional(
    z.array(z.string()).max(0, "is not supported: create a feedback token with POST /feedback/tokens"),
  ),
  after_seconds: optional(z.number().min(0).max(MAX_DELAY_S)).openapi({
    description: "Minimum delay in seconds before the run starts.",
  }),
  // No default: `checkpoint_during` applies only without `durability` (false = exit, true = async).
  durability: optional(Durability).openapi({ description: "When to store checkpoints. Default: `sync`." }),
  checkpoint_during: optional(z.boolean()).openapi({ deprecated: true }),
  // No default: the body takes precedence over the query.
  on_disconnect: optional(OnDisconnect).openapi({
    description: "Whether to cancel the run when its client disconnects. Default: `continue`.",
  }),
  langsmith_tracer: optional(
    z.object({
      project_name: optional(z.string().min(1).max(1000)),
      example_id: optional(uuid),
    }),
  ).openapi({
    description:
      "`project_name` sets the project of the trace. `example_id` links the run to an example of the project's dataset.",
  }),
  strict_resume: withDefault(z.boolean(), false).openapi({
    description:
      "Whether the run fails with `UnknownInterruptError`, and leaves the thread as it is, if `command.resume` contains the ID of an interrupt that is not open.",
  }),
};

export const runCreate = z
  .object({
    ...shared,
    checkpoint: optional(checkpointRef).openapi({
      description: "The checkpoint to start from. Takes precedence over `checkpoint_id`.",
    }),
    checkpoint_id: optional(checkpointId),
    multitask_strategy: withDefault(MultitaskStrategy, "enqueue"),
    if_not_exists: withDefault(z.enum(["reject", "create"]), "reject").openapi({
      description: "What to do if the thread does not exist.",
    }),
  })
  .openapi("RunCreate");
export type RunCreate = z.output<typeof runCreate>;

export const statelessRunCreate = z
  .object({
    ...shared,
    on_completion: withDefault(z.enum(["delete", "keep"]), "delete").openapi({
      description:
        "What to do with the run's thread when the run ends. With `delete`, the thread is hidden during the run and is then deleted. With `keep`, the thread is visible from the start of the run.",
    }),
  })
  .openapi("StatelessRunCreate");
export type StatelessRunCreate = z.output<typeof statelessRunCreate>;

/** Either all runs are accepted, or none. */
export const runBatchCreate = z.array(statelessRunCreate).min(1).max(100).openapi("RunBatchCreate");
