import bash from "highlight.js/lib/languages/bash";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import { memo, useMemo } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import remarkGfm from "remark-gfm";
import { splitBlocks } from "./limits.ts";
import { CURSOR_CLASSES, PlainText } from "./markdown.tsx";

/** Maximum length of a code block that is highlighted. */
const MAX_HIGHLIGHTED = 10_000;

const lowlight = createLowlight({ bash, javascript, json, python, sql, typescript, yaml });

/** Renders Markdown block by block. Unchanged blocks are not parsed again. */
export default function MarkdownDocument({ text, isWriting }: { text: string; isWriting: boolean }) {
  const blocks = useMemo(() => splitBlocks(text), [text]);
  return (
    <div className="grid min-w-0 grid-cols-[minmax(0,1fr)] gap-2 text-body [overflow-wrap:anywhere]">
      {blocks.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks are identified by position
        <MarkdownBlock key={index} text={block} isWriting={isWriting && index === blocks.length - 1} />
      ))}
    </div>
  );
}

const MarkdownBlock = memo(function MarkdownBlock({ text, isWriting }: { text: string; isWriting: boolean }) {
  return useMemo(() => renderMarkdown(text, isWriting), [text, isWriting]);
});

/** Calls the component as a function, to catch the parser's stack overflow for deeply nested text. Such text is shown as plain text. */
export function renderMarkdown(text: string, isWriting: boolean) {
  try {
    return ReactMarkdown({ ...OPTIONS, rehypePlugins: isWriting ? [appendCursor] : [highlightCode], children: text });
  } catch {
    return <PlainText text={text} isWriting={isWriting} />;
  }
}

/** Allows only http, https and mailto links, because the text comes from models and users. Images are not loaded. */
const safeUrl = (url: string): string => (/^(?:https?:\/\/|mailto:)/i.test(url) ? url : "");

const link = (href: string | undefined, content: React.ReactNode) =>
  href ? (
    <a href={href} target="_blank" rel="noreferrer" className="text-accent-text underline">
      {content}
    </a>
  ) : (
    <span>{content}</span>
  );

const COMPONENTS: Components = {
  // The page's title is its only level 1 heading.
  h1: ({ children }) => <h2 className="font-semibold text-title">{children}</h2>,
  h2: ({ children }) => <h3 className="font-semibold">{children}</h3>,
  h3: ({ children }) => <h4 className="font-semibold">{children}</h4>,
  h4: ({ children }) => <h5 className="font-semibold">{children}</h5>,
  h5: ({ children }) => <h6 className="font-semibold">{children}</h6>,
  h6: ({ children }) => <h6 className="font-semibold">{children}</h6>,
  p: ({ children }) => <p className="whitespace-pre-wrap">{children}</p>,
  ul: ({ children }) => <ul className="ml-5 list-disc">{children}</ul>,
  ol: ({ children, start }) => (
    <ol start={start} className="ml-5 list-decimal">
      {children}
    </ol>
  ),
  li: ({ children }) => <li>{children}</li>,
  a: ({ href, children }) => link(href, children),
  img: ({ src, alt }) => link(typeof src === "string" ? src : undefined, alt || src || "image"),
  input: ({ checked }) => <span role="img" aria-label={checked ? "done" : "open"}>{`${checked ? "☑" : "☐"} `}</span>,
  blockquote: ({ children }) => (
    <blockquote className="grid gap-2 border-line-strong border-l-2 pl-3 text-text-2">{children}</blockquote>
  ),
  hr: () => <hr className="border-line" />,
  pre: ({ children }) => (
    <pre className="whitespace-pre-wrap rounded-lg border border-line bg-sunken px-3 py-2 text-table [&>code]:bg-transparent [&>code]:p-0">
      {children}
    </pre>
  ),
  code: ({ children }) => <code className="rounded bg-sunken px-1 text-table">{children}</code>,
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section tabIndex={0} aria-label="Table" className="overflow-x-auto">
      <table className="border-collapse text-table">{children}</table>
    </section>
  ),
  th: ({ children, style }) => (
    <th style={style} className="border border-line bg-sunken px-2 py-1 text-left font-medium">
      {children}
    </th>
  ),
  td: ({ children, style }) => (
    <td style={style} className="border border-line px-2 py-1">
      {children}
    </td>
  ),
};

const OPTIONS: Options = { remarkPlugins: [remarkGfm], components: COMPONENTS, urlTransform: safeUrl };

/** Highlights fenced code blocks in known languages. */
function highlightCode() {
  return (tree: HastNode): void => {
    for (const pre of tree.children ?? []) {
      const code = pre.tagName === "pre" ? pre.children?.[0] : undefined;
      const [, language = ""] = /language-(\S+)/.exec(String(code?.properties?.className ?? "")) ?? [];
      const text = code?.children?.[0]?.value ?? "";
      if (code && lowlight.registered(language) && text.length <= MAX_HIGHLIGHTED)
        code.children = lowlight.highlight(language, text).children as HastNode[];
    }
  };
}

/** Appends the cursor after the last word. */
function appendCursor() {
  return (tree: HastNode): void => {
    let parent = tree;
    for (;;) {
      const last = parent.children?.findLast(({ value, type }) => type === "element" || value?.trim());
      if (!last?.children || ["code", "table"].includes(last.tagName ?? "")) break;
      parent = last;
    }
    parent.children?.push({
      type: "element",
      tagName: "span",
      properties: { className: CURSOR_CLASSES },
      children: [],
    });
  };
}

/** The parts of a hast node that this file uses. */
interface HastNode {
  type: string;
  tagName?: string;
  value?: string;
  properties?: Record<string, unknown>;
  children?: HastNode[];
}
