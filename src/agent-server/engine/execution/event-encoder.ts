import { deltaOf, type TextDelta } from "../../../platform/lib/text-delta.ts";
import { LONG, type StoredEvent } from "../../storage/event-reader.ts";
import type { EventBase, NewEvent } from "../../storage/events.ts";

/** An event after this many deltas in a row is stored whole, which bounds the work of a reader. */
const MAX_DELTAS = 100;

/** A delta of fewer than this many UTF-16 units ends the search for a smaller one. */
const SMALL_DELTA = 500;

/** Event types that contain the state. Consecutive events of different state types share more text than two of the same type. */
const STATE_TYPES = new Set(["values", "checkpoints", "debug", "tasks"]);

/** Whether events of a type, which may have a namespace after a bar, contain the state. */
export const hasState = (type: string): boolean => STATE_TYPES.has(type.split("|")[0] ?? "");

/** The output of the thread's previous run: a delta base for the run's first events. */
export interface DeltaBase {
  run_id: string;
  output: string;
}

interface BaseText {
  base: EventBase;
  text: string;
  /** Number of deltas that lead from a text that was stored whole to this text. */
  depth: number;
}

interface Delta {
  of: BaseText;
  delta: TextDelta;
}

/**
 * Encodes long events as deltas of the last event of the same type, the last event with the state, or the previous run's output. Events
 * often repeat a whole state with a few additions; with deltas the log of a growing thread grows linearly, not quadratically.
 */
export class EventEncoder {
  readonly #last = new Map<string, BaseText>();
  #state: BaseText | undefined;

  /** Sets the base of the first event that contains the state. */
  setDeltaBase({ run_id, output }: DeltaBase): void {
    this.#state = { base: { base_seq: 0, base_run_id: run_id }, text: output, depth: 0 };
  }

  /** Later events may be deltas of this event, so this event must be stored before them. */
  encode(event: StoredEvent): NewEvent {
    const { seq, data } = event;
    if (data.length < LONG) return event;
    const isState = hasState(event.event);
    const found = smallestDelta(data, this.#last.get(event.event), isState ? this.#state : undefined);
    const text = { base: { base_seq: seq, base_run_id: null }, text: data, depth: found ? found.of.depth + 1 : 0 };
    this.#last.set(event.event, text);
    if (isState) this.#state = text;
    return found ? { ...event, stored: { ...found.of.base, ...found.delta } } : event;
  }
}

/** Returns the smallest delta below half of the text's length. Tries the second base only if the first gives no delta below SMALL_DELTA. */
function smallestDelta(text: string, ...bases: (BaseText | undefined)[]): Delta | undefined {
  let best: Delta | undefined;
  let size = text.length / 2;
  for (const of of new Set(bases)) {
    if (!of || of.depth >= MAX_DELTAS) continue;
    const delta = deltaOf(of.text, text);
    if (sizeOf(delta) >= size) continue;
    best = { of, delta };
    size = sizeOf(delta);
    if (size < SMALL_DELTA) break;
  }
  return best;
}

const sizeOf = ({ added, copies }: TextDelta): number => added.length + copies.length;
