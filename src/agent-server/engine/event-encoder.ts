import { deltaOf, type TextDelta } from "../../platform/lib/text-delta.ts";
import type { StoredEvent } from "../storage/event-reader.ts";
import { LONG } from "../storage/event-reader.ts";
import type { EventBase, NewEvent } from "../storage/events.ts";

/** After so many changes in a row a whole text comes again, so that no reader has to put more together. */
const MAX_CHANGES = 100;

/** A change of this many units is not worth looking for a smaller one. */
const SMALL = 500;

/** Types of events that carry the state, each in its own wrapping: they have more in common with one another than with themselves. */
const STATE = new Set(["values", "checkpoints", "debug", "tasks"]);

/** Whether the events of a type, which may have a namespace after a bar, carry the state. */
export const hasState = (type: string): boolean => STATE.has(type.split("|")[0] ?? "");

/** A text that events of the run can be stored as changes of: what the run before it on the thread ended with. */
export interface OutputBase {
  run_id: string;
  output: string;
}

/** A long text, which others can be stored as changes of. */
interface Known {
  base: EventBase;
  text: string;
  /** How many changes lie between it and a whole text. */
  changes: number;
}

interface Change {
  of: Known;
  delta: TextDelta;
}

/**
 * Stores what is long and was there before only once. The events of a run often repeat a whole state, or a whole message
 * so far, with a little more: each is stored as a change of the last one of its type, or of the last one that had the state;
 * the first, of what the last run left. So the log of a growing thread grows with it, and not with its square.
 */
export class EventEncoder {
  readonly #last = new Map<string, Known>();
  #state: Known | undefined;

  /** The state that the run begins with. */
  beginWith({ run_id, output }: OutputBase): void {
    this.#state = { base: { base_seq: 0, base_run_id: run_id }, text: output, changes: 0 };
  }

  /** The event as it is to be stored. It must be stored if a later one is. */
  encode(event: StoredEvent): NewEvent {
    const { seq, data } = event;
    if (data.length < LONG) return event;
    const isState = hasState(event.event);
    const change = smallest(data, this.#last.get(event.event), isState ? this.#state : undefined);
    const known = {
      base: { base_seq: seq, base_run_id: null },
      text: data,
      changes: change ? change.of.changes + 1 : 0,
    };
    this.#last.set(event.event, known);
    if (isState) this.#state = known;
    return change ? { ...event, stored: { ...change.of.base, ...change.delta } } : event;
  }
}

/** The best change that makes the text, if one is worth it: the second base is only tried when the first is not good. */
function smallest(text: string, ...bases: (Known | undefined)[]): Change | undefined {
  let best: Change | undefined;
  let size = text.length / 2;
  for (const of of new Set(bases)) {
    if (!of || of.changes >= MAX_CHANGES) continue;
    const delta = deltaOf(of.text, text);
    if (sizeOf(delta) >= size) continue;
    best = { of, delta };
    size = sizeOf(delta);
    if (size < SMALL) break;
  }
  return best;
}

const sizeOf = ({ added, copies }: TextDelta): number => added.length + copies.length;
