import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { readEvents, TEMPORARY } from "../../api/events.ts";
import { pause } from "../../api/pause.ts";
import { RequestError } from "../../api/request.ts";
import { type Live, liveOf, withEvent } from "./conversation/live-run.ts";
import { runsQuery, threadKey, threadsKey } from "./queries.ts";

/**
 * Refetches the thread's runs when a run starts or ends, including runs of other clients. Hidden pages do not hold a connection, because
 * browsers allow only six per host with HTTP/1.1.
 */
export function useThreadEvents(thread_id: string): void {
  const client = useQueryClient();
  useEffect(() => {
    let abort = new AbortController();
    const refetch = () => {
      // The status of the thread changes with its runs, and so does the number of waiting threads.
      void client.invalidateQueries({ queryKey: threadsKey });
      return client.invalidateQueries({ queryKey: runsQuery(thread_id).queryKey });
    };
    const follow = async ({ signal }: AbortController) => {
      const events = readEvents(`/threads/${thread_id}/stream`, { query: { stream_modes: "lifecycle" }, signal });
      for await (const _ of events) await refetch();
    };
    const connect = () => {
      abort.abort();
      if (document.visibilityState === "hidden" || !navigator.onLine) return;
      abort = new AbortController();
      // After an error, for example because the thread was deleted, the runs are only polled.
      void follow(abort).catch(() => undefined);
      void refetch();
    };
    connect();
    document.addEventListener("visibilitychange", connect);
    window.addEventListener("online", connect);
    return () => {
      document.removeEventListener("visibilitychange", connect);
      window.removeEventListener("online", connect);
      abort.abort();
    };
  }, [client, thread_id]);
}

/** Pause after all attempts to resume a stream have failed. */
const RETRY_MS = 5_000;

/** Whether the stream can be read later. Other errors end it: of the server for this run, or of this page for an event. */
const isTemporary = (error: unknown): boolean =>
  error instanceof RequestError && (TEMPORARY.has(error.status) || error.status === 429);

/**
 * Streams a run from its first event to its end, then refetches the thread. After a lost connection, the
 * stream resumes after the last event.
 *
 * @param active_id ID of the thread's active run. A change takes effect when the streamed run has ended.
 * @param ended_id ID of the newest ended run. If that run ended before it could be streamed, the hook refetches the thread.
 * @returns the run's data until the thread has been refetched after the run; undefined if no run is streamed
 */
export function useLiveRun(
  thread_id: string,
  active_id: string | undefined,
  ended_id: string | undefined,
): Live | undefined {
  const client = useQueryClient();
  const [run_id, setFollowed] = useState(active_id);
  const [live, setLive] = useState<Live>();
  const ended = useRef(ended_id);
  if (run_id === undefined && active_id !== undefined && active_id !== ended.current) setFollowed(active_id);
  useEffect(() => {
    if (run_id !== undefined || ended_id === undefined || ended_id === ended.current) return;
    ended.current = ended_id;
    void client.invalidateQueries({ queryKey: threadKey(thread_id) });
  }, [client, thread_id, run_id, ended_id]);
  useEffect(() => {
    if (run_id === undefined) return;
    const abort = new AbortController();
    let current = liveOf(run_id);
    let frame = 0;
    const show = () => {
      frame = 0;
      setLive(current);
    };
    // Renders at most once per frame, because a model may send hundreds of chunks per second.
    const change = (changed: Live) => {
      current = changed;
      frame ||= requestAnimationFrame(show);
    };
    const follow = async () => {
      current = liveOf(run_id);
      const path = `/threads/${thread_id}/runs/${run_id}/stream`;
      for await (const event of readEvents(path, { last_event_id: "0", signal: abort.signal }))
        change(withEvent(current, event));
    };
    const finish = async () => {
      if (abort.signal.aborted) return;
      change({ ...current, running: [] });
      await client.invalidateQueries({ queryKey: threadKey(thread_id) });
      if (abort.signal.aborted) return;
      ended.current = run_id;
      setLive(undefined);
      setFollowed(undefined);
    };
    const followToEnd = async () => {
      while (!abort.signal.aborted) {
        const error = await follow().then(
          () => undefined,
          (reason: unknown) => reason,
        );
        // The thread contains the error of a failed run, and a rolled-back run is deleted together with its stream.
        if (!isTemporary(error)) return finish();
        // The server cannot be reached, but the run can continue there.
        await pause(RETRY_MS, abort.signal).catch(() => undefined);
      }
    };
    void followToEnd();
    return () => {
      abort.abort();
      cancelAnimationFrame(frame);
    };
  }, [client, thread_id, run_id]);
  return live;
}
