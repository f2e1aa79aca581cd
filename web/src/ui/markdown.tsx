import { memo, type ReactNode } from "react";
import { classes } from "./classes.ts";
import { type Block, blocksOf, type Inline, inlinesOf } from "./markdown-blocks.ts";

/** What is longer is shown as it is: it is read anew with every piece that a model writes. */
const MAX_CHARACTERS = 50_000;

/** A text that may be Markdown. HTML in it stays text. @param end what stands after its last word */
export const Markdown = memo(function Markdown({ text, end }: { text: string; end?: ReactNode }) {
  const blocks: Block[] = text.length > MAX_CHARACTERS ? [{ at: 0, kind: "text", text }] : blocksOf(text);
  return (
    <div className="grid min-w-0 gap-2 text-body">
      {blocks.length === 0 && end && <p>{end}</p>}
      {blocks.map((block, index) => (
        <BlockView key={block.at} block={block} end={index === blocks.length - 1 ? end : undefined} />
      ))}
    </div>
  );
});

const DEPTHS = ["ml-5", "ml-10", "ml-15"];

function BlockView({ block, end }: { block: Block; end: ReactNode }) {
  if (block.kind === "code")
    return (
      <pre className="overflow-x-auto whitespace-pre-wrap break-words rounded-lg border border-line bg-sunken px-3 py-2 text-table">
        {block.text}
        {end}
      </pre>
    );
  if (block.kind === "list") {
    const List = block.first === undefined ? "ul" : "ol";
    return (
      <List start={block.first} className={block.first === undefined ? "list-disc" : "list-decimal"}>
        {block.items.map(({ at, depth, text }, index) => (
          <li key={at} className={classes("break-words", DEPTHS[depth])}>
            <Inlines parts={inlinesOf(text)} />
            {index === block.items.length - 1 && end}
          </li>
        ))}
      </List>
    );
  }
  const content = (
    <>
      <Inlines parts={inlinesOf(block.text)} />
      {end}
    </>
  );
  if (block.kind === "text") return <p className="whitespace-pre-wrap break-words">{content}</p>;
  // The title of the page is the only one of the first order.
  const Heading = `h${Math.min(block.level + 1, 6)}` as "h2";
  return (
    <Heading className={classes("break-words font-semibold", block.level === 1 && "text-title")}>{content}</Heading>
  );
}

const Inlines = ({ parts }: { parts: readonly Inline[] }) =>
  parts.map((part) => <InlineView key={part.at} part={part} />);

function InlineView({ part }: { part: Inline }) {
  if (part.kind === "text") return part.text;
  if (part.kind === "code") return <code className="rounded bg-sunken px-1 text-table">{part.text}</code>;
  if (part.kind === "link")
    return (
      <a href={part.href} target="_blank" rel="noreferrer" className="text-accent-text underline">
        {part.text}
      </a>
    );
  const Element = part.kind === "strong" ? "strong" : "em";
  return (
    <Element>
      <Inlines parts={part.parts} />
    </Element>
  );
}
