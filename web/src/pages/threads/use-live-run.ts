import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { readEvents } from "../../api/events.ts";
import { type Live, liveOf, withEvent } from "./live.ts";
import { threadKey } from "./queries.ts";

/**
 * Follows a run from its first event on, whoever started it and however far it is, until it ends; then all that is known of the thread
 * is fetched anew. A connection that breaks is taken up after the last event.
 *
 * @param active_id the run that the thread works on; one that is being followed is followed to its end, whatever comes next
 * @param ended_id the newest run that has ended; one that was too short to be followed is fetched, too
 * @returns undefined when there is nothing to follow, and again when what the run left has been fetched
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
    const leaving = new AbortController();
    let current = liveOf(run_id);
    let frame = 0;
    const show = () => {
      frame = 0;
      setLive(current);
    };
    // Once a frame at most: a model may send hundreds of pieces a second.
    const change = (changed: Live) => {
      current = changed;
      frame ||= requestAnimationFrame(show);
    };
    const follow = async () => {
      const path = `/threads/${thread_id}/runs/${run_id}/stream`;
      for await (const event of readEvents(path, { last_event_id: "0", signal: leaving.signal }))
        change(withEvent(current, event, Date.now()));
    };
    const finish = async () => {
      if (leaving.signal.aborted) return;
      change({ ...current, running: [] });
      await client.invalidateQueries({ queryKey: threadKey(thread_id) });
      if (leaving.signal.aborted) return;
      ended.current = run_id;
      setLive(undefined);
      setFollowed(undefined);
    };
    // Why a run failed is told by the thread; one that was rolled back is gone, and its stream with it.
    void follow().then(finish, finish);
    return () => {
      leaving.abort();
      cancelAnimationFrame(frame);
    };
  }, [client, thread_id, run_id]);
  return live;
}
