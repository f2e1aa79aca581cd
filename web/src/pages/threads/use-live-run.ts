import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { readEvents } from "../../api/events.ts";
import { type Live, liveOf, withEvent } from "./conversation/live-run.ts";
import { threadKey } from "./queries.ts";

/**
 * Follows a run from its first event to its end and then refetches the thread. A broken connection resumes after the last event.
 *
 * @param active_id the active run of the thread; a run that is already followed is followed to its end first
 * @param ended_id the newest run that has ended; refetches the thread if the run was too short to be followed
 * @returns undefined if no run is followed, and again after the thread has been refetched
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
    // At most one render per frame: a model may send hundreds of chunks per second.
    const change = (changed: Live) => {
      current = changed;
      frame ||= requestAnimationFrame(show);
    };
    const follow = async () => {
      const path = `/threads/${thread_id}/runs/${run_id}/stream`;
      for await (const event of readEvents(path, { last_event_id: "0", signal: abort.signal }))
        change(withEvent(current, event, Date.now()));
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
    // Errors are ignored: the thread has the error of a failed run, and the stream of a rolled back run is deleted with the run.
    void follow().then(finish, finish);
    return () => {
      abort.abort();
      cancelAnimationFrame(frame);
    };
  }, [client, thread_id, run_id]);
  return live;
}
