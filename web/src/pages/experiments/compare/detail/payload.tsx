import { lazy, Suspense } from "react";
import { JsonTree } from "../../../../ui/json-tree.tsx";
import { soleText } from "../../preview.ts";

/** Loaded on demand, because the module includes the diff library. */
const OutputDiff = lazy(() => import("./output-diff.tsx"));

type Value = Record<string, unknown> | null | undefined;

/**
 * A run's input or output, as text or as a tree.
 *
 * @param before value to compare with; differences are highlighted
 */
export function Payload({ value, before }: { value: Value; before?: Value }) {
  if (value === null || value === undefined) return <p className="text-table text-text-3">None</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <div tabIndex={0} className="max-h-80 overflow-auto rounded-lg border border-line bg-sunken px-3 py-2 text-body">
      {before ? (
        <Suspense fallback={<Plain value={value} />}>
          <OutputDiff before={before} after={value} />
        </Suspense>
      ) : (
        <Plain value={value} />
      )}
    </div>
  );
}

function Plain({ value }: { value: NonNullable<Value> }) {
  const text = soleText(value);
  return text === undefined ? (
    <JsonTree value={value} open={2} />
  ) : (
    <p className="whitespace-pre-wrap break-words">{text}</p>
  );
}
