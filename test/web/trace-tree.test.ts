import { describe, expect, it } from "vitest";
import type { TraceRun } from "../../src/experiments/contract/traces/app-traces.ts";
import {
  axisOf,
  criticalPathOf,
  isFoldedAtFirst,
  treeOf,
  visibleTree,
} from "../../web/src/pages/traces/trace/trace-tree.ts";

const at = (ms: number) => new Date(1_800_000_000_000 + ms).toISOString();

/** A run from one time to another, in ms. */
const span = (
  id: string,
  parent: string | null,
  from: number,
  to: number | null,
  more: Partial<TraceRun> = {},
): TraceRun => ({
  id,
  parent_run_id: parent,
  dotted_order: id,
  name: id,
  run_type: "chain",
  status: to === null ? "pending" : "success",
  start_time: at(from),
  end_time: to === null ? null : at(to),
  first_token_time: null,
  error: null,
  total_tokens: 0,
  total_cost: null,
  tags: [],
  ...more,
});
const shape = (runs: TraceRun[]) =>
  treeOf(runs).map(({ run, depth, isOrphan }) => `${depth}${run.id}${isOrphan ? "?" : ""}`);
const path = (runs: TraceRun[]) => {
  const nodes = treeOf(runs);
  return [...criticalPathOf(nodes, axisOf(nodes, Date.parse(at(1_000))))].sort().join("");
};

describe("the tree of a trace", () => {
  it("follows the parents, and shows runs without a parent below the root", () => {
    expect(shape([span("a", null, 0, 9), span("b", "a", 1, 2), span("c", "b", 1, 2), span("d", "a", 3, 4)])).toEqual([
      "0a",
      "1b",
      "2c",
      "1d",
    ]);
    expect(shape([span("a", null, 0, 9), span("b", "lost", 1, 2), span("c", "b", 1, 2)])).toEqual(["0a", "1b?", "2c"]);
    expect(shape([span("b", "lost", 1, 2), span("c", "lost", 1, 2)])).toEqual(["0b?", "0c?"]);
  });

  it("may be as deep as a trace has runs", () => {
    const chain = Array.from({ length: 25_000 }, (_, i) => span(String(i), i === 0 ? null : String(i - 1), i, 30_000));
    const nodes = treeOf(chain);
    expect(nodes.at(-1)?.depth).toBe(24_999);
    expect(visibleTree(nodes, { isFolded: () => false, search: "24999" }).rows).toHaveLength(25_000);
    expect(visibleTree(nodes, { isFolded: (node) => isFoldedAtFirst(node, 25_000), search: "" }).rows).toHaveLength(3);
  });

  it("has a critical path of the runs that determine the duration", () => {
    const root = span("a", null, 0, 100);
    expect(path([root, span("b", "a", 0, 40), span("c", "a", 0, 60), span("d", "a", 60, 100)])).toBe("acd");
    expect(
      path([root, span("b", "a", 0, 90), span("c", "b", 0, 30), span("d", "b", 30, 80), span("e", "a", 5, 20)]),
    ).toBe("abcd");
    // A child that outlives its parent counts until the end of the parent.
    expect(path([root, span("b", "a", 0, 500), span("c", "b", 200, 400), span("d", "b", 10, 90)])).toBe("abd");
    // A pending run ends now.
    expect(path([span("a", null, 0, null), span("b", "a", 0, 40), span("c", "a", 20, null)])).toBe("ac");
  });

  it("has an axis that grows while a run is pending, until the trace was silent for ten minutes", () => {
    const pending = treeOf([span("a", null, 0, null), span("b", "a", 0, 40)]);
    const length = (now: number) => {
      const { start, end } = axisOf(pending, Date.parse(at(now)));
      return end - start;
    };
    expect(length(5_000)).toBe(5_000);
    expect(length(3_600_000)).toBe(40);
    expect(length(-5_000)).toBe(40);
    const ended = axisOf(treeOf([span("a", null, 0, 0)]), Date.now());
    expect(ended.end - ended.start).toBe(1);
  });

  it("shows the steps of LangGraph itself only in a search", () => {
    const nodes = treeOf([
      span("a", null, 0, 9),
      span("b", "a", 0, 1, { name: "__start__" }),
      span("c", "a", 1, 2, { tags: ["langsmith:hidden"] }),
      span("d", "a", 1, 2, { tags: ["langsmith:hidden"], status: "error", error: "failed" }),
      span("e", "a", 1, 2, { tags: ["langsmith:hidden"] }),
      span("f", "e", 1, 2),
    ]);
    const rows = (search: string) =>
      visibleTree(nodes, { isFolded: () => false, search })
        .rows.map(({ run }) => run.id)
        .join("");
    expect(rows("")).toBe("adef");
    expect(rows("start")).toBe("ab");
  });

  it("is searched by name, type, error, tag and node, and shows what is above the matches", () => {
    const nodes = treeOf([
      span("agent", null, 0, 9),
      span("step", "agent", 0, 9, { langgraph_node: "plan" }),
      span("gpt", "step", 0, 9, { run_type: "llm", status: "error", error: "Rate limit" }),
      span("other", "agent", 0, 9, { tags: ["slow"] }),
    ]);
    const found = (search: string) => {
      const { rows, found } = visibleTree(nodes, { isFolded: () => true, search });
      return `${rows.map(({ run }) => run.id)} ${[...(found ?? [])]}`;
    };
    expect(found("")).toBe("agent ");
    expect(found("LLM")).toBe("agent,step,gpt gpt");
    expect(found("rate error")).toBe("agent,step,gpt gpt");
    expect(found("slow")).toBe("agent,other other");
    expect(found("plan")).toBe("agent,step step");
    expect(found("nothing")).toBe(" ");
    const also = new Set(["gpt"]);
    const { rows, found: byPayload } = visibleTree(nodes, { isFolded: () => true, search: "payload", also });
    expect([rows.map(({ run }) => run.id), byPayload]).toEqual([["agent", "step", "gpt"], also]);
  });
});
