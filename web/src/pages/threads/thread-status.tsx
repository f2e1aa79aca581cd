import type { ThreadStatus as Word } from "../../../../src/agent-server/contract/records.ts";
import { Status } from "../../ui/status.tsx";

/** Where a thread stands. One that asks something says whom it waits for: "interrupted" sounds as if it had failed. */
export const ThreadStatus = ({ status, asks }: { status: Word; asks: boolean }) =>
  asks ? <Status status="waits for you" kind="interrupted" /> : <Status status={status} />;
