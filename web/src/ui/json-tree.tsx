import { ChevronDown, ChevronRight } from "lucide-react";
import { useState } from "react";
import { Button } from "./button.tsx";
import { count } from "./format.ts";

/** Number of children that are shown initially. A list may have 100,000 items. */
const INITIAL_CHILDREN = 100;
/** Longer strings are truncated until the user expands them. */
const MAX_TEXT_LENGTH = 400;

/**
 * Shows a JSON value as a tree with one key per line.
 *
 * @param open number of levels that are expanded initially
 */
export function JsonTree({ value, name, open = 1 }: { value: unknown; name?: string; open?: number }) {
  return (
    <div className="overflow-x-auto font-mono text-table">
      <Node value={value} name={name} open={open} />
    </div>
  );
}

function Node({ value, name, open }: { value: unknown; name?: string; open: number }) {
  if (value === null || typeof value !== "object")
    return (
      <div className="flex py-px pl-[18px]">
        <Name name={name} />
        <Leaf value={value} />
      </div>
    );
  return <Branch value={value} name={name} open={open} />;
}

function Branch({ value, name, open }: { value: object; name?: string; open: number }) {
  const [isOpen, setOpen] = useState(open > 0);
  const [limit, setLimit] = useState(INITIAL_CHILDREN);
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const size = `${count(entries.length)} ${isList ? "item" : "key"}${entries.length === 1 ? "" : "s"}`;
  const Icon = isOpen ? ChevronDown : ChevronRight;
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
          {isList ? "[" : "{"}
          {entries.length > 0 && !isOpen && ` ${size} `}
          {(entries.length === 0 || !isOpen) && (isList ? "]" : "}")}
        </span>
      </button>
      {isOpen && entries.length > 0 && (
        <div className="ml-[6px] border-line border-l pl-2">
          {entries.slice(0, limit).map(([key, child]) => (
            <Node key={key} name={key} value={child} open={open - 1} />
          ))}
          {entries.length > limit && (
            <Button small look="quiet" onClick={() => setLimit(limit + 10 * INITIAL_CHILDREN)}>
              {count(entries.length - limit)} more
            </Button>
          )}
        </div>
      )}
    </div>
  );
}

const Name = ({ name }: { name: string | undefined }) =>
  name === undefined ? null : <span className="mr-2 shrink-0 text-accent-text">{name}:</span>;

function Leaf({ value }: { value: unknown }) {
  const [isExpanded, setExpanded] = useState(false);
  if (typeof value !== "string") return <span className="text-worse">{String(value)}</span>;
  const isCut = value.length > MAX_TEXT_LENGTH && !isExpanded;
  return (
    <span className="min-w-0 whitespace-pre-wrap break-words text-success">
      {isCut ? value.slice(0, MAX_TEXT_LENGTH) : value}
      {isCut && (
        <Button small look="quiet" onClick={() => setExpanded(true)}>
          … {count(value.length - MAX_TEXT_LENGTH)} more characters
        </Button>
      )}
    </span>
  );
}
