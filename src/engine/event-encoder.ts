import { deltaOf } from "../lib/text-delta.ts";
import { LONG } from "../storage/event-reader.ts";
import type { EventBase, NewEvent, StoredEvent } from "../storage/events.ts";

/** After so many changes in a row a whole text comes again, so that no reader has to put more together. */
const MOST_CHANGES = 100;

/** A text that events of the run can be stored as changes of: what the run before it on the thread ended with. */
export interface OutputBase {
  run_id: string;
  output: string;
}

interface Last {
  base: EventBase;
  text: string;
  changes: number;
}

/**
 * Stores what is long and was there before only once. The events of a run often repeat a whole state, or a whole message
 * so far, with a little more at the end: each is stored as the change of the one before it with the same name, the first
 * state as a change of what the last run left. So the log of a growing thread grows with it, and not with its square.
 */
export class EventEncoder {
  readonly #last = new Map<string, Last>();

  /** The state that the run begins with. */
  beginWith({ run_id, output }: OutputBase): void {
    this.#last.set("values", { base: { base_seq: 0, base_run_id: run_id }, text: output, changes: 0 });
  }

  /** The event as it is to be stored. It must be stored if a later one is. */
  encode(event: StoredEvent): NewEvent {
    const { seq, data } = event;
    if (data.length < LONG) return event;
    const last = this.#last.get(event.event);
    const delta = last && last.changes < MOST_CHANGES ? deltaOf(last.text, data) : undefined;
    const isSmall = delta !== undefined && delta.middle.length < data.length / 2;
    this.#last.set(event.event, {
      base: { base_seq: seq, base_run_id: null },
      text: data,
      changes: last && isSmall ? last.changes + 1 : 0,
    });
    if (!last || !delta || !isSmall) return event;
    return { ...event, stored: { ...last.base, ...delta } };
  }
}
