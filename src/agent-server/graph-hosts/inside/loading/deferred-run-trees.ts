import type { AsyncLocalStorage } from "node:async_hooks";

/** The module `@langchain/core/singletons` of a copy of LangChain. */
export interface Singletons {
  AsyncLocalStorageProviderSingleton: {
    getInstance(): Pick<AsyncLocalStorage<object | undefined>, "run" | "getStore">;
    runWithConfig<T>(config: unknown, callback: () => T, avoidCreatingRootRunTree?: boolean): T;
  };
}

type Store = Record<string | symbol, unknown>;

const CHILD_CONFIG = Symbol.for("lc:child_config");
const CONTEXT_VARIABLES = Symbol.for("lc:context_variables");

/** The properties that LangChain reads for each call. A run tree is created when another one is used. */
class DeferredRunTree {
  readonly #create: () => Store;
  readonly #own: Store;
  #tree: Store | undefined;

  constructor(own: Store, create: () => Store) {
    this.#own = own;
    this.#create = create;
  }

  read(key: string | symbol): unknown {
    return this.#tree || !(key in this.#own) ? Reflect.get(this.tree, key) : this.#own[key];
  }

  get tree(): Store {
    if (this.#tree) return this.#tree;
    const { extra, [CONTEXT_VARIABLES]: variables } = this.#own;
    const tree = this.#create();
    this.#tree = tree;
    tree.extra = { ...(tree.extra as object), ...(extra as object) };
    if (variables === undefined) delete tree[CONTEXT_VARIABLES];
    else tree[CONTEXT_VARIABLES] = variables;
    return tree;
  }
}

const AS_TREE: ProxyHandler<DeferredRunTree> = {
  get: (deferred, key) => deferred.read(key),
  set: (deferred, key, value) => Reflect.set(deferred.tree, key, value),
  has: (deferred, key) => Reflect.has(deferred.tree, key),
  deleteProperty: (deferred, key) => Reflect.deleteProperty(deferred.tree, key),
  defineProperty: (deferred, key, descriptor) => Reflect.defineProperty(deferred.tree, key, descriptor),
  ownKeys: (deferred) => Reflect.ownKeys(deferred.tree),
  getOwnPropertyDescriptor: (deferred, key) => Reflect.getOwnPropertyDescriptor(deferred.tree, key),
  getPrototypeOf: (deferred) => Reflect.getPrototypeOf(deferred.tree),
};

/** Copies of LangGraph may share a copy of LangChain. */
const deferring = new WeakSet<object>();

/**
 * LangChain stores the config of each call that is not traced in a new `RunTree` of LangSmith's client, which takes 25 µs, several times
 * in each node. After this call, the tree is created when code uses more of it than the config.
 */
export function deferRunTrees({ AsyncLocalStorageProviderSingleton: provider }: Singletons): void {
  if (deferring.has(provider)) return;
  deferring.add(provider);
  const { runWithConfig } = provider;
  const current = () => provider.getInstance().getStore() as Store | undefined;
  const createWith = () => runWithConfig.call(provider, undefined, current);
  const create = () => provider.getInstance().run(undefined, createWith) as Store;
  provider.runWithConfig = (config, callback, avoidCreatingRootRunTree) => {
    const run = () => {
      const store = current();
      // The tree of a traced call.
      if (store?.extra) return callback();
      const own = {
        extra: { [CHILD_CONFIG]: config },
        tracingEnabled: false,
        [CONTEXT_VARIABLES]: store?.[CONTEXT_VARIABLES],
      };
      return provider.getInstance().run(new Proxy(new DeferredRunTree(own, create), AS_TREE), callback);
    };
    return runWithConfig.call(provider, config, avoidCreatingRootRunTree ? callback : run, true) as never;
  };
}
