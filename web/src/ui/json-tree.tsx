import { ChevronDown, ChevronRight, Search } from "lucide-react";
import { useDeferredValue, useMemo, useState } from "react";
import { Button } from "./button.tsx";
import { Copy } from "./code-block.tsx";
import { Input, leaveOnEscape } from "./form/field.tsx";
import { count } from "./format.ts";

/** Number of children that are shown initially. A list may have 100,000 items. */
const INITIAL_CHILDREN = 100;
/** Longer strings are truncated until the user expands them. */
const MAX_TEXT_LENGTH = 400;

/** Objects and lists that a search has found in the tree, with their ancestors. Undefined without a search. */
type Found = ReadonlySet<unknown> | undefined;

/**
 * Shows a JSON value as a tree with one key per line, with buttons to search and copy the value.
 *
 * @param open number of levels that are expanded initially
 */
export function JsonTree({ value, name, open = 1 }: { value: unknown; name?: string; open?: number }) {
  const [typed, setTyped] = useState<string>();
  const text = useDeferredValue(typed?.trim().toLowerCase() ?? "");
  const search = useMemo(() => (text === "" ? undefined : searchTree(value, text)), [value, text]);
  const isTree = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  return (
    <div className="group/json relative min-w-0">
      {isTree && (
        <div className="absolute top-0 right-0 z-[1] flex items-center rounded bg-raised opacity-0 focus-within:opacity-100 group-hover/json:opacity-100 pointer-coarse:opacity-100">
          <Button
            look="quiet"
            small
            square
            aria-label="Search JSON"
            aria-pressed={typed !== undefined}
            onClick={() => setTyped(typed === undefined ? "" : undefined)}
          >
            <Search size={13} />
          </Button>
          <Copy text={() => JSON.stringify(value, null, 2)} label="Copy value" />
        </div>
      )}
      {typed !== undefined && (
        <div className="mb-1 flex items-center gap-2 pr-14 font-sans">
          <Input
            type="search"
            autoFocus
            aria-label="Search keys and values"
            placeholder="Search keys and values"
            className="max-w-64"
            value={typed}
            onChange={({ target }) => setTyped(target.value)}
            onKeyDown={leaveOnEscape}
          />
          <span role="status" className="text-table text-text-2">
            {search && (search.count === 1 ? "1 match" : `${count(search.count)} matches`)}
          </span>
        </div>
      )}
      <div className="overflow-x-auto font-mono text-table">
        <Node value={value} name={name} open={open} found={search?.found} text={text} isShown={false} />
      </div>
    </div>
  );
}

/** Returns the objects and lists on the way to each key or value that contains the text, and the number of matches. */
function searchTree(root: unknown, text: string): { found: Found; count: number } {
  const found = new Set<unknown>();
  let matches = 0;
  const visit = (value: unknown): boolean => {
    if (typeof value !== "object" || value === null) return leafMatches(value, text);
    let isFound = false;
    for (const [key, child] of Object.entries(value)) {
      const inside = visit(child);
      const isLeaf = typeof child !== "object" || child === null;
      const isNamed = !Array.isArray(value) && key.toLowerCase().includes(text);
      if (isNamed || (inside && isLeaf)) matches++;
      if (isNamed || inside) isFound = true;
    }
    if (isFound) found.add(value);
    return isFound;
  };
  visit(root);
  return { found, count: matches };
}

const leafMatches = (value: unknown, text: string): boolean => String(value).toLowerCase().includes(text);

interface NodeProps {
  value: unknown;
  name?: string;
  open: number;
  found: Found;
  /** The text that is searched, in lower case. */
  text: string;
  /** Whether the name of an ancestor matches the search, so that everything below is shown. */
  isShown: boolean;
}

function Node(props: NodeProps) {
  const { value, name } = props;
  if (value === null || typeof value !== "object")
    return (
      <div className="flex py-px pl-[18px]">
        <Name name={name} />
        <Leaf value={value} />
      </div>
    );
  return <Branch {...props} value={value} />;
}

function Branch({ value, name, open, found, text, isShown }: NodeProps & { value: object }) {
  const [chosen, setOpen] = useState<boolean>();
  const [limit, setLimit] = useState(INITIAL_CHILDREN);
  const isOpen = chosen ?? (open > 0 || (found?.has(value) ?? false));
  const isList = Array.isArray(value);
  const all = Object.entries(value);
  const isNamed = (key: string) => !isList && text !== "" && key.toLowerCase().includes(text);
  const entries =
    found && !isShown
      ? all.filter(
          ([key, child]) =>
            isNamed(key) || (typeof child === "object" && child !== null ? found.has(child) : leafMatches(child, text)),
        )
      : all;
  const size = `${count(all.length)} ${isList ? "item" : "key"}${all.length === 1 ? "" : "s"}`;
  const Icon = isOpen ? ChevronDown : ChevronRight;
  const [start, end] = isList ? "[]" : "{}";
  return (
    <div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center rounded py-px text-left hover:bg-hover"
      >
        <Icon size={14} className="mr-1 shrink-0 text-text-3" aria-hidden />
        <Name name={name} />
        <span className="text-text-3">
          {start}
          {all.length > 0 && !isOpen && ` ${size} `}
          {(all.length === 0 || !isOpen) && end}
        </span>
      </button>
      {isOpen && all.length > 0 && (
        <>
          <div className="ml-[6px] border-line border-l pl-2">
            {entries.slice(0, limit).map(([key, child]) => (
              <Node
                key={key}
                name={key}
                value={child}
                open={open - 1}
                found={found}
                text={text}
                isShown={isShown || isNamed(key)}
              />
            ))}
            {entries.length > limit && (
              <Button small look="quiet" onClick={() => setLimit(limit + 10 * INITIAL_CHILDREN)}>
                {count(entries.length - limit)} more
              </Button>
            )}
          </div>
          <div className="pl-[18px] text-text-3">{end}</div>
        </>
      )}
    </div>
  );
}

const Name = ({ name }: { name: string | undefined }) =>
  name === undefined ? null : <span className="mr-2 shrink-0 text-accent-text">{name}:</span>;

/** Quotes are generated content, so that a text can be selected without them. */
const QUOTED = `before:content-['"'] after:content-['"']`;

function Leaf({ value }: { value: unknown }) {
  const [isExpanded, setExpanded] = useState(false);
  if (typeof value !== "string") return <span className="text-worse">{String(value)}</span>;
  const isCut = value.length > MAX_TEXT_LENGTH && !isExpanded;
  return (
    <span className="min-w-0 whitespace-pre-wrap text-success [overflow-wrap:anywhere]">
      <span className={QUOTED}>{isCut ? value.slice(0, MAX_TEXT_LENGTH) : value}</span>
      {isCut && (
        <Button small look="quiet" onClick={() => setExpanded(true)}>
          … {count(value.length - MAX_TEXT_LENGTH)} more characters
        </Button>
      )}
    </span>
  );
}
