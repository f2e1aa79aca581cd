import { useEffect, useState } from "react";
import type { LogLine, Logs } from "../../../../src/control-plane/contract/logs.ts";
import { pause } from "../../api/pause.ts";
import { api } from "../../api/request.ts";
import type { Level } from "./page.ts";

/** Which lines. */
export interface LogSelection {
  deployment_id: string;
  revision_id: string;
  type: "build" | "deploy";
  level: Level | undefined;
  text: string | undefined;
}

/** Lines that are kept at most; the oldest go first. */
const MAX_LINES = 5_000;
const PAGE = 500;
/** How long to wait until the next look, in ms; five times as long when nobody sees the page. */
const PAUSE_MS = 1_000;

export interface Followed {
  /** Undefined until the first answer. */
  lines: readonly LogLine[] | undefined;
  error: Error | undefined;
  /** Older lines were left out. */
  isCut: boolean;
}

const NOTHING: Followed = { lines: undefined, error: undefined, isCut: false };

/**
 * The last lines of a log, and, while it is followed, those that come. A look begins at the time of the last line that is known,
 * since several may be of the same millisecond; their ids tell which are new.
 */
export function useLogs(selection: LogSelection | undefined, isFollowing: boolean): Followed {
  const [followed, setFollowed] = useState(NOTHING);
  const key = JSON.stringify(selection);
  useEffect(() => setFollowed((before) => (key === undefined ? before : NOTHING)), [key]);
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
            setFollowed((before) => ({ lines, error: undefined, isCut: isCut || (known === lines && before.isCut) }));
          else setFollowed((before) => (before.error ? { ...before, error: undefined } : before));
        } catch (error) {
          if (!signal.aborted) setFollowed((before) => ({ ...before, error: error as Error }));
        }
        if (!isFollowing) return;
        await pause(document.hidden ? 5 * PAUSE_MS : PAUSE_MS, signal);
      }
    })();
    return () => abort.abort();
  }, [key, isFollowing]);
  return followed;
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

/** The same list when nothing has come. */
async function linesAfter(selection: LogSelection, known: readonly LogLine[], signal: AbortSignal): Promise<Lines> {
  const last = known.at(-1);
  const seen = new Set(known.filter(({ timestamp }) => timestamp === last?.timestamp).map(({ id }) => id));
  const come: LogLine[] = [];
  let offset: string | undefined;
  do {
    const { logs, next_offset } = await page(selection, { order: "asc", start_time: last?.timestamp, offset }, signal);
    come.push(...logs.filter(({ id }) => !seen.has(id)));
    offset = next_offset ?? undefined;
  } while (offset !== undefined && come.length < MAX_LINES);
  if (come.length === 0) return { lines: known, isCut: false };
  const all = [...known, ...come];
  return { lines: all.slice(-MAX_LINES), isCut: all.length > MAX_LINES };
}
