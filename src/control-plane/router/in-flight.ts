import type { Target } from "./routes.ts";

/** What each instance has yet to end: requests, streams and sockets. */
export class InFlight {
  readonly #counts = new Map<string, number>();
  #turn = 0;

  of(instance_id: string): number {
    return this.#counts.get(instance_id) ?? 0;
  }

  /**
   * Takes the target with the least to end, of equals each in turn, and counts one more for it right away: whoever asks
   * {@link of} after a switch misses nobody.
   */
  take(targets: readonly Target[], refused: ReadonlySet<Target>): Target | undefined {
    let best: Target | undefined;
    const first = this.#turn++;
    for (let i = 0; i < targets.length; i++) {
      const target = targets[(first + i) % targets.length] as Target;
      if (refused.has(target)) continue;
      if (!best || this.of(target.instance_id) < this.of(best.instance_id)) best = target;
    }
    if (best) this.#counts.set(best.instance_id, this.of(best.instance_id) + 1);
    return best;
  }

  leave({ instance_id }: Target): void {
    const left = this.of(instance_id) - 1;
    if (left > 0) this.#counts.set(instance_id, left);
    else this.#counts.delete(instance_id);
  }
}
