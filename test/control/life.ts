import type { DeployDriver } from "../../src/control-plane/drivers/driver.ts";
import type { Database, Tx } from "../../src/platform/database/database.ts";

/** What happens at the n-th time that a process asks something of the world: before it is done, or after. */
export interface Fault {
  at: number;
  when: "before" | "after";
  what: "crash" | "error";
}

/** Answers to nobody: what a process that is gone has asked. */
const silence = <T>(): Promise<T> => new Promise<T>(() => undefined);

/** One life of a process. Whatever it does outside of itself goes through here, so that it can end anywhere in between. */
export class Life {
  dead = false;
  /** Writes, and what was asked of drivers. */
  calls = 0;
  /** Called with the deployment each time that a driver is asked to change something. */
  onDeed: (deployment_id: string) => void = () => undefined;
  #fault: Fault | undefined;
  #frozen: PromiseWithResolvers<void> | undefined;
  #busy = 0;
  #idle = Promise.withResolvers<void>();

  constructor(fault?: Fault) {
    this.#fault = fault;
  }

  /** Ends when nothing is being asked at the moment. */
  async idle(): Promise<void> {
    while (this.#busy > 0 && !this.dead) await this.#idle.promise;
  }

  get isBusy(): boolean {
    return this.#busy > 0 && !this.dead;
  }

  end(): void {
    this.dead = true;
    this.#idle.resolve();
  }

  /** @param waits whether it may take for ever: then nobody waits for its end */
  async call<T>(work: () => Promise<T>, { waits = false, counts = true } = {}): Promise<T> {
    await this.#frozen?.promise;
    if (this.dead) return silence();
    const meets = counts && ++this.calls === this.#fault?.at ? this.#fault : undefined;
    if (!waits) this.#busy++;
    try {
      if (meets?.when === "before") await this.#meet(meets);
      const value = await work();
      if (meets?.when === "after") await this.#meet(meets);
      return this.dead ? await silence<T>() : value;
    } catch (error) {
      if (this.dead) return await silence<T>();
      throw error;
    } finally {
      if (!waits) this.#busy--;
      if (this.#busy === 0) {
        this.#idle.resolve();
        this.#idle = Promise.withResolvers();
      }
    }
  }

  async #meet({ what }: Fault): Promise<void> {
    if (what === "error") throw new Error("a fault of this test");
    this.end();
    await silence();
  }

  /** The next write, or what is asked of a driver next, fails before it is done. */
  failNext(): void {
    this.#fault = { at: this.calls + 1, when: "before", what: "error" };
  }

  /** Nothing goes on in this process until it is thawed. */
  freeze(): void {
    this.#frozen = Promise.withResolvers();
  }

  thaw(): void {
    this.#frozen?.resolve();
    this.#frozen = undefined;
  }

  /** A database as this process sees it. */
  database(real: Database): Database {
    const read = <A extends unknown[], T>(ask: (...args: A) => Promise<T>) => {
      return (...args: A) => this.call(() => ask(...args), { counts: false });
    };
    const { k, statements, dialect, all, first, run } = real.read;
    return {
      ...real,
      read: { k, statements, dialect, all: read(all), first: read(first), run: read(run) } as Tx,
      hints: {
        emit: (hint) => !this.dead && real.hints.emit(hint),
        listen: (kind, listener) => real.hints.listen(kind, (hint) => !this.dead && listener(hint)),
      },
      write: (work) => this.call(() => real.write(work)),
    };
  }

  driver(real: DeployDriver): DeployDriver {
    const did = <T>({ deployment_id }: { deployment_id: string }, work: () => Promise<T>, waits = false): Promise<T> =>
      this.call(
        () => {
          this.onDeed(deployment_id);
          return work();
        },
        { waits },
      );
    return {
      kind: real.kind,
      build: (order, io) => did(order, () => real.build?.(order, io) as Promise<{ artifact: string }>, true),
      ensure: (order) => did(order, () => real.ensure(order)),
      probe: (ref) => this.call(() => real.probe(ref), { counts: false }),
      stop: (ref, options) => did(ref, () => real.stop(ref, options)),
      list: () => this.call(() => real.list(), { counts: false }),
      prune: (deployment) => did(deployment, async () => real.prune?.(deployment)),
      remove: (deployment) => did(deployment, () => real.remove(deployment)),
    };
  }
}
