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

  it("has links with brackets in them", () => {
    expect(inlinesOf("see [a [b](https://e.example/f_(g)?h[]=1)")).toEqual([
      { at: 0, kind: "text", text: "see [a " },
      { at: 7, kind: "link", href: "https://e.example/f_(g)?h[]=1", text: "b" },
    ]);
  });

  it("may close its headings", () => {
    for (const line of ["## a b ##", "##   a b", "## a b #### "])
      expect(blocksOf(line)).toEqual([{ at: 0, kind: "heading", level: 2, text: "a b" }]);
    for (const none of ["##", "## ", "## ##"]) expect(blocksOf(none)).toMatchObject([{ kind: "text" }]);
  });
});

/** Finding 11 of the security review: a message made for it froze the page. */
describe("what is made to take long", () => {
  const repeated = (piece: string) => (length: number) => piece.repeat(length / piece.length);
  const growing = (piece: (n: number) => string) => (length: number) => {
    let text = "";
    for (let n = 0; text.length < length; n++) text += piece(n);
    return text.slice(0, length);
  };
  const all = (text: string) => {
    for (const block of blocksOf(text)) {
      if (block.kind === "list") for (const item of block.items) inlinesOf(item.text);
      else if (block.kind !== "code") inlinesOf(block.text);
    }
  };
  /** Of the processor: others on the machine do not count. */
  const time_ms = (text: string) => {
    const before = process.threadCpuUsage();
    for (let n = 0; n < 5; n++) all(text);
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };

  it.each<[string, (length: number) => string]>([
    ["nested lists", growing((n) => `${"  ".repeat(n)}- a\n`)],
    ["lists in lists of one line", repeated("- ")],
    ["items of spaces", (length) => `- ${" ".repeat(length)}\u2028x`],
    ["short paragraphs", repeated("a\n\n")],
    ["headings", repeated("# a\n")],
    ["a heading of spaces", (length) => `# ${" ".repeat(length)}x`],
    ["a heading of spaces in the text", (length) => `# x${" ".repeat(length)}x`],
    ["a heading of closing marks", (length) => `# ${"# ".repeat(length / 2)}x`],
    ["asterisks", repeated("*")],
    ["open emphasis", repeated("*a ")],
    ["open strong text", repeated("**a ")],
    ["closed strong text", repeated("a**")],
    ["three asterisks", repeated("***a* ")],
    ["brackets", repeated("[")],
    ["pairs of brackets", repeated("[]")],
    ["open labels", repeated("[a ")],
    ["open links", repeated("[a](https://b")],
    ["open links with brackets", repeated("[a](https://b()")],
    ["a link without an end", (length) => `[a](https://${"()".repeat(length / 2)}`],
    ["links in a link", (length) => `[a](https://b${"[a](https://b)".repeat(length / 14)}`],
    ["backticks", repeated("`")],
    ["more and more backticks", growing((n) => `${"`".repeat(n)} `)],
    ["open code", repeated("`a\n")],
    ["fences", repeated("```\n~~~\n")],
    ["fences of another kind", repeated("```a\n")],
    ["block quotes", repeated(">")],
    ["lines of block quotes", repeated("> a\n")],
    ["tables", repeated("|a|b|\n|-|-|\n")],
    ["a row of a table", repeated("|")],
    ["spaces", repeated(" ")],
    ["empty lines", repeated("\n")],
  ])("is read in time in proportion to its length: %s", (_, make) => {
    all(make(1_000));
    // Sixteen times the text: 16 where time is in proportion, 256 where it is quadratic; memory and a busy machine may quadruple it.
    // The system counts in steps of some ms.
    expect(time_ms(make(200_000))).toBeLessThan(64 * Math.max(5, time_ms(make(12_500))));
  });
});
