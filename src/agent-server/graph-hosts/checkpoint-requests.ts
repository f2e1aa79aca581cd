/** The checkpoints that hosts read and write through the service. */

/** The languages of graphs. The hosts of one language cannot read the checkpoints of the other. */
export type Language = "js" | "python";

/** A checkpoint with its channel values and pending writes. The fields are columns of the tables. */
export interface CheckpointData {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  checkpoint: string;
  metadata: string;
  /** Set by the service. */
  language?: Language;
  values: ValueData[];
  writes: WriteData[];
}
export type NewCheckpointData = Omit<CheckpointData, "writes">;
export interface ValueData {
  channel: string;
  version: string;
  type: string;
  value: string;
}
export interface WriteData {
  task_id: string;
  /** Orders the tasks of a step; empty if LangGraph sets no path. */
  task_path: string;
  idx: number;
  channel: string;
  type: string;
  value: string;
}

export type WriteKey = Pick<WriteData, "task_id" | "channel">;

export interface CheckpointFilter {
  /** LangGraph's interface allows this field to be absent (all threads), but the service rejects such a request. */
  thread_id?: string;
  checkpoint_ns?: string;
  checkpoint_id?: string;
  /** Only checkpoints older than this one. */
  before?: string;
  /** Selects checkpoints whose metadata contains these values, including nested values. */
  metadata?: object;
  limit: number;
}

/** The ancestors of a checkpoint, from its parent up to those that have a stored value of each channel. */
export interface AncestorFilter {
  thread_id: string;
  checkpoint_ns: string;
  /** Default: the newest one. */
  checkpoint_id?: string;
  with_itself?: boolean;
  channels: string[];
  /** Ignores the checkpoints and writes of this run. */
  without?: string;
}

/** Values and writes of the requested channels. A channel is left out once a newer checkpoint has a value of it. */
export type AncestorData = Pick<CheckpointData, "checkpoint_id" | "parent_checkpoint_id" | "values" | "writes">;

export type CheckpointRequest =
  /** `without`: ignores the checkpoints and writes of this run. */
  | { op: "get"; thread_id: string; checkpoint_ns: string; checkpoint_id?: string; without?: string }
  | ({ op: "list" } & CheckpointFilter)
  | ({ op: "ancestors" } & AncestorFilter)
  | { op: "put"; checkpoint: NewCheckpointData }
  | { op: "delete_thread"; thread_id: string }
  | { op: "put_writes"; thread_id: string; checkpoint_ns: string; checkpoint_id: string; writes: WriteData[] };

/** A write that a run may send without waiting for the result. Later messages of the run are processed after it. */
export type CheckpointWrite = Extract<CheckpointRequest, { op: "put" | "put_writes" }>;
