import { z } from "@hono/zod-openapi";
import { jsonObject, nullable, optional, timestamp, uuid } from "../../platform/contract/fields.ts";

/** `pending` and `running` are active, the other statuses are final. `interrupted`: cancelled, or paused for user input. */
export const RunStatus = z
  .enum(["pending", "running", "success", "error", "timeout", "interrupted"])
  .openapi("RunStatus");
export type RunStatus = z.infer<typeof RunStatus>;

/** `busy` from the creation of a run to its end, `interrupted` while paused, `error` after a failed run. */
export const ThreadStatus = z.enum(["idle", "busy", "interrupted", "error"]).openapi("ThreadStatus");
export type ThreadStatus = z.infer<typeof ThreadStatus>;

export const MultitaskStrategy = z
  .enum(["reject", "interrupt", "rollback", "enqueue"])
  .openapi("MultitaskStrategy", { description: "What to do when the thread already has a pending or running run." });
export type MultitaskStrategy = z.infer<typeof MultitaskStrategy>;

export const CancelAction = z
  .enum(["interrupt", "rollback"])
  .openapi("CancelAction", { description: "`interrupt` keeps the run and its checkpoints. `rollback` deletes both." });
export type CancelAction = z.infer<typeof CancelAction>;

/** `run_modes`: events of the runs. `lifecycle`: starts and ends of the runs. `state_update`: the state after each run. */
export const ThreadStreamMode = z.enum(["run_modes", "lifecycle", "state_update"]).openapi("ThreadStreamMode");
export type ThreadStreamMode = z.infer<typeof ThreadStreamMode>;

/** Event names: the mode `messages-tuple` uses the name `messages`, the mode `messages` uses names that begin with `messages/`. */
export const StreamMode = z
  .enum([
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "events",
    "debug",
    "tasks",
    "checkpoints",
    "custom",
    "tools",
  ])
  .openapi("StreamMode");
export type StreamMode = z.infer<typeof StreamMode>;

/** When checkpoints are stored: before the next step (`sync`), during it (`async`), or when the graph stops (`exit`). */
export const Durability = z.enum(["sync", "async", "exit"]).openapi("Durability");
export type Durability = z.infer<typeof Durability>;

/** `configurable` contains the graph's own settings; unknown keys are kept. */
export const Config = z
  .looseObject({
    tags: optional(z.array(z.string())),
    recursion_limit: optional(z.int().min(1)).openapi({ description: "Maximum number of steps of a run." }),
    configurable: optional(jsonObject),
  })
  .openapi("Config");
export type Config = z.infer<typeof Config>;

const assistantBase = z.object({
  assistant_id: uuid,
  graph_id: z.string(),
  config: Config,
  context: jsonObject,
  metadata: jsonObject,
  version: z.int().min(1),
  name: z.string(),
  description: nullable(z.string()),
  created_at: timestamp,
});

export const Assistant = z.object({ ...assistantBase.shape, updated_at: timestamp }).openapi("Assistant");
export type Assistant = z.infer<typeof Assistant>;

/** Requests with `select` return partial records. */
export const PartialAssistant = Assistant.partial().openapi("PartialAssistant");
export type PartialAssistant = z.infer<typeof PartialAssistant>;

/** `created_at` is the time at which the version was created. */
export const AssistantVersion = assistantBase.openapi("AssistantVersion");
export type AssistantVersion = z.infer<typeof AssistantVersion>;

/** A graph's request for a value. The thread is paused until a new run provides the value in `command.resume`. */
export const Interrupt = z
  .looseObject({
    id: z.string(),
    value: z.unknown().optional(),
    response_schema: jsonObject.nullish().openapi({
      description:
        "JSON Schema of the expected response. If the interrupt has no schema, this field is null for Python graphs and absent for JavaScript graphs.",
    }),
    namespace: z
      .array(z.string())
      .optional()
      .openapi({ description: "Path to the subgraph; empty for the root graph." }),
  })
  .openapi("Interrupt");
export type Interrupt = z.infer<typeof Interrupt>;

export const Thread = z
  .object({
    thread_id: uuid,
    created_at: timestamp,
    updated_at: timestamp,
    state_updated_at: timestamp,
    metadata: jsonObject,
    config: Config,
    status: ThreadStatus,
    values: z.unknown().openapi({ description: "State values after the last step; null before the first step." }),
    interrupts: z.record(z.string(), z.array(Interrupt)).openapi({ description: "Open interrupts, keyed by task ID." }),
    error: z.unknown().optional().openapi({ description: "Error of the last run, or null." }),
    ttl: nullable(
      z.object({ strategy: z.enum(["delete", "keep_latest"]), ttl_minutes: z.number(), expires_at: timestamp }),
    )
      .optional()
      .openapi({ description: "Only present with `include=ttl`." }),
    extracted: jsonObject
      .optional()
      .openapi({ description: "Values selected by `extract`. Only present in search results." }),
  })
  .openapi("Thread");
export type Thread = z.infer<typeof Thread>;

export const PartialThread = Thread.partial().openapi("PartialThread");
export type PartialThread = z.infer<typeof PartialThread>;

/** `kwargs` contains the input and the settings. */
export const Run = z
  .object({
    run_id: uuid,
    thread_id: uuid,
    assistant_id: uuid,
    created_at: timestamp,
    updated_at: timestamp,
    status: RunStatus,
    metadata: jsonObject,
    kwargs: jsonObject,
    multitask_strategy: MultitaskStrategy,
    cancel_reason: nullable(z.string()).optional(),
  })
  .openapi("Run");
export type Run = z.infer<typeof Run>;

export const PartialRun = Run.partial().openapi("PartialRun");
export type PartialRun = z.infer<typeof PartialRun>;

/** `checkpoint_ns` is empty for the root graph. `checkpoint_id` may be missing for a subgraph. */
export const Checkpoint = z
  .object({
    thread_id: z.string(),
    checkpoint_ns: z.string(),
    checkpoint_id: nullable(z.string()).optional(),
    checkpoint_map: nullable(jsonObject).optional(),
  })
  .openapi("Checkpoint");
export type Checkpoint = z.infer<typeof Checkpoint>;

// A ThreadState. Typed as an arbitrary object, because Hono's response types do not support recursive types.
const nestedState = z.lazy((): z.ZodType<Record<string, unknown> | null> => nullable(ThreadState));

/** A pending or ended execution of a node. For a subgraph, `checkpoint` is set or, on request, `state`. */
export const ThreadTask = z
  .object({
    id: z.string(),
    name: z.string(),
    path: z.array(z.unknown()).optional(),
    error: nullable(z.string()),
    interrupts: z.array(Interrupt),
    checkpoint: nullable(Checkpoint),
    state: nestedState,
    result: z.unknown().optional(),
  })
  .openapi("ThreadTask");
export type ThreadTask = z.infer<typeof ThreadTask>;

/** A snapshot of a thread: its values and its next nodes. Empty and without metadata for a thread without a graph. */
export const ThreadState = z
  .object({
    values: z.unknown(),
    next: z.array(z.string()).openapi({ description: "Nodes to execute next; empty when the graph has finished." }),
    tasks: z.array(ThreadTask),
    metadata: nullable(jsonObject).optional(),
    created_at: nullable(timestamp),
    checkpoint: nullable(Checkpoint),
    parent_checkpoint: nullable(Checkpoint),
    interrupts: z.array(Interrupt).optional(),
  })
  .openapi("ThreadState");
export type ThreadState = z.infer<typeof ThreadState>;

export const PartialThreadState = ThreadState.partial().openapi("PartialThreadState");
export type PartialThreadState = z.infer<typeof PartialThreadState>;

export const GraphDrawing = z
  .object({
    nodes: z.array(
      z.object({
        id: z.union([z.string(), z.int()]),
        type: z.string().optional(),
        name: z.string().optional(),
        data: z.unknown().optional(),
        metadata: z.unknown().optional(),
      }),
    ),
    edges: z.array(
      z.object({
        source: z.string(),
        target: z.string(),
        data: z.string().optional(),
        conditional: z.boolean().optional(),
      }),
    ),
  })
  .openapi("GraphDrawing");
export type GraphDrawing = z.infer<typeof GraphDrawing>;

const jsonSchema = nullable(jsonObject).optional();
const graphSchemaFields = {
  input_schema: jsonSchema,
  output_schema: jsonSchema,
  state_schema: jsonSchema,
  config_schema: jsonSchema,
  context_schema: jsonSchema,
};

/** JSON Schemas of a graph; null or missing where none can be derived. */
export const GraphSchemas = z.object({ graph_id: z.string(), ...graphSchemaFields }).openapi("GraphSchemas");
export type GraphSchemas = z.infer<typeof GraphSchemas>;

/** {@link GraphSchemas} of subgraphs, by namespace: `a`, or `a|b` for the subgraph `b` inside the subgraph `a`. */
export const SubgraphSchemas = z.record(z.string(), z.object(graphSchemaFields)).openapi("SubgraphSchemas");
export type SubgraphSchemas = z.infer<typeof SubgraphSchemas>;
