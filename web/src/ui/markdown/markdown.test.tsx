import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import MarkdownDocument, { renderMarkdown } from "./document.tsx";
import { isCostly, MAX_CHARACTERS, splitBlocks } from "./limits.ts";

// The web app is compiled without the types of Node.
declare const process: { cpuUsage(since?: object): { user: number } };

const html = (text: string, isWriting = false) =>
  renderToStaticMarkup(<MarkdownDocument text={text} isWriting={isWriting} />);
/** HTML without class attributes. */
const bare = (text: string) => html(text).replace(/ class="[^"]*"/g, "");

describe("Markdown", () => {
  it("has headings, lists, quotes, code, tables and paragraphs", () => {
    const found = bare(
      "# Bees\n\nThey *fly*\nfar.\n\n1. out\n   - and back\n\n```js\n# no heading\n```\n\n|a|\n|-|\n|b|",
    );
    expect(found).toContain("<h2>Bees</h2>");
    expect(found).toContain("<p>They <em>fly</em>\nfar.</p>");
    expect(found).toMatch(/<ol>\s*<li>out\s*<ul>\s*<li>and back<\/li>/);
    expect(found).toMatch(/<pre><code>.*no heading/);
    expect(found).toContain("<td>b</td>");
    expect(bare("> so\n\nto speak")).toMatch(/^<div><blockquote>\s*<p>so<\/p>\s*<\/blockquote><p>to speak<\/p>/);
    expect(html("```python\nreturn 1\n```")).toContain("hljs-keyword");
  });

  it("renders every prefix of a streamed text with a cursor at the end", () => {
    const text = "# A\n- **b** `c`\n\n```\nd\n```\n#e 2 * 3 * 4\n\n|a|b|\n|-|-|\n|c|d|";
    for (let end = 0; end <= text.length; end++) expect(html(text.slice(0, end), true)).toContain("animate-pulse-slow");
    expect(html("- a **b**", true)).toMatch(/b<span class="[^"]*animate-pulse-slow[^"]*"><\/span><\/strong>/);
  });

  it("shows HTML as text", () => {
    expect(html("<b>bold</b>")).toContain("&lt;b&gt;bold&lt;/b&gt;");
    expect(html("a\n\n<script>alert(1)</script>\n\nb")).not.toContain("<script");
    expect(html('<img src="https://e.example/a.png" onerror="alert(1)">')).not.toContain("<img");
  });

  it("links to http, https and mailto only, in a new tab without a referrer", () => {
    expect(html("[d](https://e.example/f_(g)?h=1)")).toMatch(
      /<a href="https:\/\/e\.example\/f_\(g\)\?h=1" target="_blank" rel="noreferrer"/,
    );
    expect(html("[m](mailto:a@e.example)")).toContain('href="mailto:a@e.example"');
    for (const url of ["javascript:alert(1)", "data:text/html,x", "/admin", "#top", "//e.example", "JaVaScRiPt:x"])
      expect(html(`[a](${url})`)).not.toContain("href");
  });

  it("does not load images", () => {
    expect(html("![cat](https://e.example/cat.png)")).toMatch(/<a href="https:\/\/e\.example\/cat\.png".*>cat<\/a>/);
    for (const url of ["https://e.example/cat.png", "/cat.png", "data:image/png;base64,AA"])
      expect(html(`![cat](${url})`)).not.toContain("<img");
  });

  it("is parsed block by block, unless definitions apply to all blocks", () => {
    expect(splitBlocks("a\n\nb\n\n- c\n\n- d\n\n  e\n\n```\nf\n\ng\n```\nh")).toEqual([
      "a\n",
      "b\n\n- c\n\n- d\n\n  e\n",
      "```\nf\n\ng\n```\nh",
    ]);
    expect(splitBlocks("[a]\n\n[a]: https://e.example")).toHaveLength(1);
    expect(bare("[a]\n\n[a]: https://e.example")).toContain('<a href="https://e.example"');
  });

  it("stays plain text if it is too long or too expensive to parse", () => {
    expect(isCostly("a".repeat(MAX_CHARACTERS + 1))).toBe(true);
    expect(isCostly("A **bold** word and `code`, see [b](https://e.example).\n\n".repeat(500))).toBe(false);
  });
});

/** Without the limits, a message with such text could freeze the page (security review, finding 11). */
describe("text crafted to be slow to parse", () => {
  const repeated = (piece: string) => (length: number) => piece.repeat(length / piece.length);
  const growing = (piece: (n: number) => string) => (length: number) => {
    let text = "";
    for (let n = 0; text.length < length; n++) text += piece(n);
    return text.slice(0, length);
  };
  /** Returns the CPU time of parsing the longest text that is not rejected as too costly. */
  const worst_ms = (make: (length: number) => string) => {
    let length = MAX_CHARACTERS;
    while (isCostly(make(length)) && length > 100) length = Math.floor(length * 0.8);
    const text = make(length);
    const started = process.cpuUsage();
    for (const block of splitBlocks(text)) renderMarkdown(block, false);
    return process.cpuUsage(started).user / 1_000;
  };

  it.each<[string, (length: number) => string]>([
    ["nested lists", growing((n) => `${"  ".repeat(n)}- a\n`)],
    ["nested lists with - in one line", repeated("- ")],
    ["nested lists with + in one line", repeated("+ ")],
    ["numbered lists in one line", repeated("1. ")],
    ["items of spaces", (length) => `- ${" ".repeat(length)}\u2028x`],
    ["headings", repeated("# a\n")],
    ["a heading of spaces", (length) => `# ${" ".repeat(length)}x`],
    ["a heading with many closing # characters", (length) => `# ${"# ".repeat(length / 2)}x`],
    ["asterisks", repeated("*")],
    ["open emphasis", repeated("*a ")],
    ["open strong text", repeated("**a ")],
    ["closed strong text", repeated("a**")],
    ["three asterisks", repeated("***a* ")],
    ["nested emphasis", (length) => "*a _b ".repeat(length / 12) + "c_ d*".repeat(length / 12)],
    ["brackets", repeated("[")],
    ["pairs of brackets", repeated("[]")],
    ["nested brackets", (length) => "[".repeat(length / 2) + "]".repeat(length / 2)],
    ["nested images", (length) => "![".repeat(length / 6) + "](b)".repeat(length / 6)],
    ["open labels", repeated("[a ")],
    ["open links", repeated("[a](https://b")],
    ["open links with brackets", repeated("[a](https://b()")],
    ["a link without an end", (length) => `[a](https://${"()".repeat(length / 2)}`],
    ["links in a link", (length) => `[a](https://b${"[a](https://b)".repeat(length / 14)}`],
    ["backticks", repeated("`")],
    ["more and more backticks", growing((n) => `${"`".repeat(n)} `)],
    ["open code", repeated("`a\n")],
    ["fences", repeated("```\n~~~\n")],
    ["block quotes", repeated(">")],
    ["lines of block quotes", repeated("> a\n")],
    ["tables", repeated("|a|b|\n|-|-|\n")],
    ["a row of a table", repeated("|")],
    ["mail addresses", repeated("a@b.c ")],
    ["HTML", repeated("<a><b>")],
    ["spaces", repeated(" ")],
    ["empty lines", repeated("\n")],
  ])("is parsed in less than 8 s of CPU time: %s", { timeout: 30_000 }, (_, make) => {
    expect(worst_ms(make)).toBeLessThan(8_000);
  });
});
