import { useEffect, useState } from "react";
import type { LogLine, Logs } from "../../../../src/control-plane/contract/logs.ts";
import { pause } from "../../api/pause.ts";
import { api } from "../../api/request.ts";
import type { Level } from "./page.ts";

export interface LogSelection {
  deployment_id: string;
  revision_id: string;
  type: "build" | "deploy";
  level: Level | undefined;
  text: string | undefined;
}

/** Maximum number of log lines in memory. The oldest lines are dropped first. */
const MAX_LINES = 5_000;
const PAGE = 500;
/** Poll interval while the page is visible. A hidden page polls five times less often. */
const POLL_MS = 1_000;

export interface LogState {
  /** Loaded log lines, oldest first. Undefined until the first response. */
  lines: readonly LogLine[] | undefined;
  error: Error | undefined;
  isCut: boolean;
}

const EMPTY: LogState = { lines: undefined, error: undefined, isCut: false };

/**
 * Loads the last lines of a log and, while following, polls for new lines. Each poll starts at the timestamp of the last loaded line,
 * because several lines can have the same millisecond. Lines that are already loaded are dropped by ID.
 */
export function useLogs(selection: LogSelection | undefined, isFollowing: boolean): LogState {
  const [state, setState] = useState(EMPTY);
  const key = JSON.stringify(selection);
  useEffect(() => setState((before) => (key === undefined ? before : EMPTY)), [key]);
  useEffect(() => {
    if (key === undefined) return;
    const abort = new AbortController();
    const { signal } = abort;
    const chosen = JSON.parse(key) as LogSelection;
    void (async () => {
      let known: readonly LogLine[] | undefined;
      while (!signal.aborted) {
        try {
          const { lines, isCut } = known ? await linesAfter(chosen, known, signal) : await lastLines(chosen, signal);
          const isNew = lines !== known;
          known = lines;
          if (isNew)
            setState((before) => ({ lines, error: undefined, isCut: isCut || (known === lines && before.isCut) }));
          else setState((before) => (before.error ? { ...before, error: undefined } : before));
        } catch (error) {
          if (!signal.aborted) setState((before) => ({ ...before, error: error as Error }));
        }
        if (!isFollowing) return;
        await pause(document.hidden ? 5 * POLL_MS : POLL_MS, signal);
      }
    })();
    return () => abort.abort();
  }, [key, isFollowing]);
  return state;
}

interface Lines {
  lines: readonly LogLine[];
  isCut: boolean;
}

const page = (
  { deployment_id, revision_id, type, level, text }: LogSelection,
  query: Record<string, string | number | undefined>,
  signal: AbortSignal,
): Promise<Logs> =>
  api.get<Logs>(`/v2/deployments/${deployment_id}/revisions/${revision_id}/logs`, {
    signal,
    query: { type, level, query: text, limit: PAGE, ...query },
  });

async function lastLines(selection: LogSelection, signal: AbortSignal): Promise<Lines> {
  const { logs, next_offset } = await page(selection, { order: "desc" }, signal);
  return { lines: logs.reverse(), isCut: next_offset !== null };
}

/** Returns the known lines and the new lines after them. Returns the same array if there are no new lines. */
async function linesAfter(selection: LogSelection, known: readonly LogLine[], signal: AbortSignal): Promise<Lines> {
  const last = known.at(-1);
  const seen = new Set(known.filter(({ timestamp }) => timestamp === last?.timestamp).map(({ id }) => id));
  const added: LogLine[] = [];
  let offset: string | undefined;
  do {
    const { logs, next_offset } = await page(selection, { order: "asc", start_time: last?.timestamp, offset }, signal);
    added.push(...logs.filter(({ id }) => !seen.has(id)));
    offset = next_offset ?? undefined;
  } while (offset !== undefined && added.length < MAX_LINES);
  if (added.length === 0) return { lines: known, isCut: false };
  const all = [...known, ...added];
  return { lines: all.slice(-MAX_LINES), isCut: all.length > MAX_LINES };
}
