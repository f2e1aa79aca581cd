import { describe, expect, it } from "vitest";
import { blocksOf, inlinesOf } from "../../web/src/ui/markdown-blocks.ts";

describe("what models write", () => {
  it("is read as headings, lists, code and paragraphs", () => {
    const text = "# Bees\n\nThey *fly*\nfar.\n1. out\n  - and back\n```js\n# no heading\n```\nEnd";
    expect(blocksOf(text)).toEqual([
      { at: 0, kind: "heading", level: 1, text: "Bees" },
      { at: 2, kind: "text", text: "They *fly*\nfar." },
      {
        at: 4,
        kind: "list",
        first: 1,
        items: [
          { at: 4, depth: 0, text: "out" },
          { at: 5, depth: 1, text: "and back" },
        ],
      },
      { at: 6, kind: "code", text: "# no heading" },
      { at: 9, kind: "text", text: "End" },
    ]);
  });

  it("keeps all of a text that is cut anywhere, as it is while it is written", () => {
    const text = "# A\n- **b** `c`\n\n```\nd\n```\n#e 2 * 3 * 4";
    for (let end = 0; end <= text.length; end++) expect(() => blocksOf(text.slice(0, end))).not.toThrow();
    expect(blocksOf("```\nd")).toEqual([{ at: 0, kind: "code", text: "d" }]);
    expect(blocksOf("#e 2 * 3 * 4")).toEqual([{ at: 0, kind: "text", text: "#e 2 * 3 * 4" }]);
  });

  it("is marked within a line, and leads nowhere but to the web", () => {
    expect(inlinesOf("a **b `c`** [d](https://e.example/f)")).toEqual([
      { at: 0, kind: "text", text: "a " },
      {
        at: 2,
        kind: "strong",
        parts: [
          { at: 0, kind: "text", text: "b " },
          { at: 2, kind: "code", text: "c" },
        ],
      },
      { at: 11, kind: "text", text: " " },
      { at: 12, kind: "link", href: "https://e.example/f", text: "d" },
    ]);
    for (const plain of ["2 * 3 * 4", "[a](javascript:alert(1))", "<b>bold</b>", "**", "snake_case_name"])
      expect(inlinesOf(plain)).toEqual([{ at: 0, kind: "text", text: plain }]);
  });
});
