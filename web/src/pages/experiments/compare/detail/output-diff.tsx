import { diffWordsWithSpace } from "diff";
import { useMemo, useState } from "react";
import { mainText } from "../../../../../../src/platform/contract/preview.ts";
import { Button } from "../../../../ui/button.tsx";
import { count } from "../../../../ui/format.ts";
import { type Difference, differencesOf } from "./json-diff.ts";

/** Time limit for a text diff. Very different texts take quadratic time. */
const TIMEOUT_MS = 200;
const INITIAL_DIFFERENCES = 50;

export default function OutputDiff({
  before,
  after,
}: {
  before: Record<string, unknown>;
  after: Record<string, unknown>;
}) {
  const [from, to] = [soleText(before), soleText(after)];
  return from !== undefined && to !== undefined ? (
    <TextDiff before={from} after={to} />
  ) : (
    <JsonDiff before={before} after={after} />
  );
}

/** Returns the text of outputs with a single key: a text, or the last message of a conversation. */
const soleText = (outputs: object): string | undefined =>
  Object.keys(outputs).length === 1 ? mainText(outputs, "outputs") : undefined;

/** Shows removed text in orange with a strike-through, and added text in blue with an underline. */
function TextDiff({ before, after }: { before: string; after: string }) {
  const parts = useMemo(() => diffWordsWithSpace(before, after, { timeout: TIMEOUT_MS }), [before, after]);
  if (!parts)
    return (
      <p className="whitespace-pre-wrap break-words">
        <span className="mb-1 block text-table text-text-3">
          The texts are too different for a word diff. Only the output of this experiment is shown.
        </span>
        {after}
      </p>
    );
  const isSame = parts.every(({ added, removed }) => !added && !removed);
  return (
    <p className="whitespace-pre-wrap break-words">
      {isSame && <span className="mb-1 block text-table text-text-3">No differences</span>}
      {parts.map(({ added, removed, value }, index) => {
        const key = `${index} ${value.length}`;
        if (added)
          return (
            <ins key={key} className="rounded-sm bg-better-bg text-better decoration-1 underline-offset-2">
              {value}
            </ins>
          );
        if (removed)
          return (
            <del key={key} className="rounded-sm bg-worse-bg text-worse decoration-1">
              {value}
            </del>
          );
        return <span key={key}>{value}</span>;
      })}
    </p>
  );
}

function JsonDiff({ before, after }: { before: object; after: object }) {
  const { differences, same } = useMemo(() => differencesOf(before, after), [before, after]);
  const [limit, setLimit] = useState(INITIAL_DIFFERENCES);
  return (
    <div className="grid gap-1.5 text-table">
      <p className="text-text-3">
        {differences.length === 0 ? "No differences" : `${count(differences.length)} changed, ${count(same)} unchanged`}
      </p>
      {differences.slice(0, limit).map((difference) => (
        <PathDiff key={difference.path} {...difference} />
      ))}
      {differences.length > limit && (
        <Button small look="quiet" onClick={() => setLimit(limit + 10 * INITIAL_DIFFERENCES)}>
          {count(differences.length - limit)} more
        </Button>
      )}
    </div>
  );
}

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

function PathDiff({ path, before, after }: Difference) {
  const name = <code className="mr-2 text-accent-text">{path}</code>;
  if (typeof before === "string" && typeof after === "string")
    return (
      <div>
        {name}
        <TextDiff before={before} after={after} />
      </div>
    );
  return (
    <div className="break-words">
      {name}
      {before !== undefined && <del className="mr-2 rounded-sm bg-worse-bg font-mono text-worse">{textOf(before)}</del>}
      {after !== undefined && <ins className="rounded-sm bg-better-bg font-mono text-better">{textOf(after)}</ins>}
    </div>
  );
}
