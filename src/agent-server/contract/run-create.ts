import { z } from "@hono/zod-openapi";
import {
  assistantId,
  checkpointId,
  jsonObject,
  optional,
  repeated,
  searchable,
  withDefault,
} from "../../platform/contract/fields.ts";
import { Config, Durability, MultitaskStrategy, StreamMode } from "./records.ts";

const send = z.object({ node: z.string().min(1), input: withDefault(z.unknown(), null) }).openapi("Send");
const target = z.union([z.string().min(1), send]);

/**
 * What to do instead of starting from an input. `resume` answers an interrupt, and `null` is an answer too:
 * whether there is one is `"resume" in command`.
 */
export const command = z
  .object({
    resume: z.unknown().optional().openapi({ description: "A value, or values by interrupt id. May be null." }),
    update: optional(
      z.union(
        [jsonObject, z.array(z.tuple([z.string(), z.unknown()]))],
        "must be an object, or pairs of key and value",
      ),
    ).openapi({
      description: "State update: an object, or pairs of key and value.",
    }),
    goto: optional(z.union([target, z.array(target)], "must be a node, {node, input}, or a list of these")).openapi({
      description: "The nodes that run next.",
    }),
  })
  .openapi("Command");

/** A checkpoint as callers name it. Clients leave the thread out, since the path has it. */
export const checkpointRef = z
  .object({
    thread_id: optional(z.string()),
    checkpoint_ns: optional(z.string()),
    checkpoint_id: optional(checkpointId),
    checkpoint_map: optional(jsonObject),
  })
  .openapi("CheckpointRef");
export type CheckpointRef = z.output<typeof checkpointRef>;

/** What happens to a run when the client that started it is gone. */
export const OnDisconnect = z.enum(["cancel", "continue"]).openapi("OnDisconnect");
export type OnDisconnect = z.infer<typeof OnDisconnect>;

/** Node names, or `*` for every node. */
const nodes = optional(z.union([z.literal("*"), z.array(z.string())], 'must be "*" or a list of nodes'));

/** A URL, or a path on this server. Whether it may be called is decided later, not by its form. */
const webhook = z
  .string()
  .min(1)
  .max(65_536)
  .refine((url) => URL.canParse(url, "http://relative.invalid"), "must be a URL or a path")
  .openapi({ format: "uri-reference" });

/** A hundred years, in seconds. Without a bound a time could overflow what a Date can hold. */
const MAX_DELAY_S = 100 * 366 * 24 * 3600;

/** What both kinds of runs have. Unknown keys are ignored. */
const shared = {
  assistant_id: assistantId,
  input: withDefault(z.unknown(), null).openapi({ description: "Null goes on from the thread's state." }),
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
  feedback_keys: optional(z.array(z.string())),
  after_seconds: optional(z.number().min(0).max(MAX_DELAY_S)).openapi({
    description: "Do not start earlier than this.",
  }),
  // No default: `checkpoint_during` counts only where `durability` is missing (false = exit, true = async).
  durability: optional(Durability).openapi({ description: "When checkpoints are written. Default: sync." }),
  checkpoint_during: optional(z.boolean()).openapi({ deprecated: true }),
  // No default: the query may say it too, and then the body wins.
  on_disconnect: optional(OnDisconnect).openapi({ description: "Default: continue." }),
  langsmith_tracer: optional(z.object({ project_name: optional(z.string()), example_id: optional(z.string()) })),
  strict_resume: withDefault(z.boolean(), false).openapi({ description: "Fail on an unknown interrupt id." }),
};

/** A run on a thread. */
export const runCreate = z
  .object({
    ...shared,
    checkpoint: optional(checkpointRef).openapi({ description: "Start from here. Wins over checkpoint_id." }),
    checkpoint_id: optional(checkpointId),
    multitask_strategy: withDefault(MultitaskStrategy, "enqueue"),
    if_not_exists: withDefault(z.enum(["reject", "create"]), "reject").openapi({
      description: "What to do when there is no such thread.",
    }),
  })
  .openapi("RunCreate");
export type RunCreate = z.output<typeof runCreate>;

/** A run without a thread. It gets a hidden one, which `on_completion` deletes or keeps. */
export const statelessRunCreate = z
  .object({
    ...shared,
    on_completion: withDefault(z.enum(["delete", "keep"]), "delete").openapi({
      description: "What happens to the hidden thread when the run has ended.",
    }),
  })
  .openapi("StatelessRunCreate");
export type StatelessRunCreate = z.output<typeof statelessRunCreate>;

/** Most runs in one batch. */
export const MAX_BATCH = 100;

/** Several stateless runs, accepted or refused together. */
export const runBatchCreate = z.array(statelessRunCreate).min(1).max(MAX_BATCH).openapi("RunBatchCreate");
