import type { StreamResponse, Task, TaskStatus } from "@a2a-js/sdk";
import type { StreamedEvent } from "../../engine/index.ts";
import type { TaskRow } from "../../storage/tasks.ts";
import { type GraphMessage, textOf } from "../ag-ui/messages.ts";
import { artifactOf, contextIdOf, statusOf } from "./task-objects.ts";

/** The text of a message that was sent. */
interface SentText {
  length: number;
  isOpen: boolean;
}

/** Converts the events of one run to updates of its task. Each AI message is an artifact, to which its tokens are appended. */
export class TaskUpdates {
  readonly #row: TaskRow;
  /** By message ID. */
  readonly #sent = new Map<string, SentText>();
  #isSubmitted: boolean;

  constructor(row: TaskRow) {
    this.#row = row;
    this.#isSubmitted = row.state === "submitted";
  }

  take({ event, data }: StreamedEvent): StreamResponse[] {
    const [mode] = event.split("|");
    // A further attempt of the run sends its messages from the start, and a gap is a part of a message that is missing.
    if (mode === "metadata" || mode === "gap") this.#sent.clear();
    const started = this.#isSubmitted ? [this.#status(statusOf({ ...this.#row, ...WORKING() }, undefined))] : [];
    this.#isSubmitted = false;
    return mode === "messages" ? [...started, ...this.#message((JSON.parse(data) as [GraphMessage])[0])] : started;
  }

  #message({ id, type, content, tool_call_chunks }: GraphMessage): StreamResponse[] {
    if (!id || (type !== "ai" && type !== "AIMessageChunk")) return [];
    const sent = this.#sent.get(id);
    const text = textOf(content);
    const isOpen = Array.isArray(tool_call_chunks);
    // A node returns messages that its model has already sent token by token.
    if (text === "" || (!isOpen && sent)) return [];
    this.#sent.set(id, { length: (sent?.length ?? 0) + text.length, isOpen });
    return [this.#artifact(id, text, { append: sent !== undefined, lastChunk: !isOpen })];
  }

  /** @param task the ended task; undefined if its run was deleted or rolled back */
  finish(task: Task | undefined): StreamResponse[] {
    const updates: StreamResponse[] = [];
    for (const { artifactId, parts } of task?.artifacts ?? []) {
      const content = parts[0]?.content;
      const text = content?.$case === "text" ? content.value : "";
      if (this.#sent.get(artifactId)?.length === text.length) continue;
      // The message was not streamed, or this reader has missed a part of it.
      this.#sent.delete(artifactId);
      updates.push(this.#artifact(artifactId, text, { append: false, lastChunk: true }));
    }
    const open = [...this.#sent].filter(([, { isOpen }]) => isOpen);
    updates.push(...open.map(([id]) => this.#artifact(id, "", { append: true, lastChunk: true })));
    return [...updates, this.#status(task?.status ?? statusOf({ ...this.#row, state: "canceled" }, undefined))];
  }

  get #ids() {
    return { taskId: this.#row.run_id, contextId: contextIdOf(this.#row), metadata: undefined };
  }

  #status(status: TaskStatus): StreamResponse {
    return { payload: { $case: "statusUpdate", value: { ...this.#ids, status } } };
  }

  #artifact(id: string, text: string, flags: { append: boolean; lastChunk: boolean }): StreamResponse {
    return { payload: { $case: "artifactUpdate", value: { ...this.#ids, artifact: artifactOf(id, text), ...flags } } };
  }
}

const WORKING = () => ({ state: "working" as const, changed_at: Date.now() });
