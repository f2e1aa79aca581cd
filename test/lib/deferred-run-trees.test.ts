import { AsyncLocalStorage } from "node:async_hooks";
import { isProxy } from "node:util/types";
import { CallbackManager } from "@langchain/core/callbacks/manager";
import { getContextVariable, setContextVariable } from "@langchain/core/context";
import { AsyncLocalStorageProviderSingleton as provider } from "@langchain/core/singletons";
import { LangChainTracer } from "@langchain/core/tracers/tracer_langchain";
import { beforeAll, describe, expect, it } from "vitest";
import { deferRunTrees } from "../../src/agent-server/graph-hosts/inside/loading/deferred-run-trees.ts";

type Tree = Record<string | symbol, unknown> & { createChild(config: object): Tree };

const current = () => provider.getInstance().getStore() as unknown as Tree;
const CONFIG = { configurable: { thread_id: "one" } };

describe("the run trees of calls that are not traced", () => {
  /** What LangChain itself creates. */
  let original: Tree;
  beforeAll(() => {
    provider.initializeGlobalInstance(new AsyncLocalStorage());
    original = provider.runWithConfig(CONFIG, current);
    expect(isProxy(original)).toBe(false);
    deferRunTrees({ AsyncLocalStorageProviderSingleton: provider as never });
  });

  it("hold the config of their call, and that of the outer call after it", () => {
    const inner = { configurable: { thread_id: "two" } };
    provider.runWithConfig(CONFIG, () => {
      expect(provider.runWithConfig(inner, () => provider.getRunnableConfig())).toBe(inner);
      expect(provider.getRunnableConfig()).toBe(CONFIG);
      expect(isProxy(current())).toBe(true);
    });
    expect(provider.getRunnableConfig()).toBeUndefined();
  });

  it("have all that LangChain's own have, once one of it is used", () => {
    const tree = provider.runWithConfig(CONFIG, current);
    expect(tree.tracingEnabled).toBe(false);
    expect(Reflect.ownKeys(tree)).toEqual(Reflect.ownKeys(original));
    expect([tree.name, Object.getPrototypeOf(tree)]).toEqual([original.name, Object.getPrototypeOf(original)]);
    expect(tree.id).toBe(tree.id);
    expect(tree.extra).toEqual(original.extra);
    const child = tree.createChild({ name: "child" });
    expect([child.name, child.trace_id, child.tracingEnabled]).toEqual(["child", tree.trace_id, false]);
    tree.tags = ["changed"];
    expect(tree.tags).toEqual(["changed"]);
  });

  it("pass context variables on to inner calls, and keep those that a call sets", () => {
    provider.runWithConfig(CONFIG, () => {
      setContextVariable("color", "red");
      provider.runWithConfig(CONFIG, () => {
        expect(getContextVariable("color")).toBe("red");
        expect(current().name).toBe(original.name);
        expect(getContextVariable("color")).toBe("red");
        setContextVariable("color", "blue");
        expect(getContextVariable("color")).toBe("blue");
      });
    });
    provider.runWithConfig(CONFIG, () => expect(getContextVariable("color")).toBeUndefined());
  });

  it("are not created for calls that avoid them", () => {
    expect(provider.runWithConfig(CONFIG, current, true)).toBeUndefined();
  });

  it("are those of the tracer for traced calls", async () => {
    const tracer = new LangChainTracer({ client: { createRun: async () => {}, updateRun: async () => {} } as never });
    const manager = new CallbackManager();
    manager.addHandler(tracer, true);
    const run = await manager.handleChainStart({ lc: 1, type: "not_implemented", id: [] }, {}, undefined, "chain");
    const tree = provider.runWithConfig({ callbacks: run.getChild() }, current);
    expect([isProxy(tree), tree.id, tree.tracingEnabled]).toEqual([false, run.runId, true]);
  });
});
