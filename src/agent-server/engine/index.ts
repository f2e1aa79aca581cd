/** The engine's interface. Files outside this folder import the engine from here. */

export { applyMultitaskStrategy, cancelLocked, type PendingCancel } from "./cancellation/cancel.ts";
export type { Cancellations } from "./cancellation/cancellations.ts";
export { Engine } from "./engine.ts";
export { bindOnAccept, type LockedThread, newlyBound } from "./execution/bind-thread.ts";
export type { FetchAs, FindToken } from "./execution/host-requests.ts";
export type { StreamedEvent } from "./streams/event-log.ts";
export { endOf, type Position, START, type ThreadEvent } from "./streams/thread-log.ts";
export type { TraceStore } from "./tracing/trace-queue.ts";
export { TraceOutbox } from "./tracing/trace-queue.ts";
