import { lazy, Suspense } from "react";
import { PayloadView } from "../../../traces/run/payload.tsx";

/** Loaded on demand, because the module includes the diff library. */
const OutputDiff = lazy(() => import("./output-diff.tsx"));

type Value = Record<string, unknown> | null | undefined;

/**
 * A run's input or output, as a conversation, a text or a tree.
 *
 * @param before value to compare with; differences are highlighted
 */
export function Payload({ title, value, before }: { title: string; value: Value; before?: Value }) {
  if (value === null || value === undefined) return <p className="text-table text-text-3">None</p>;
  const plain = <PayloadView title={title} value={value} isPlain />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <div tabIndex={0} className="max-h-80 overflow-auto rounded-lg text-body">
      {before ? (
        <Suspense fallback={plain}>
          <div className="rounded-lg border border-line bg-raised px-3 py-2">
            <OutputDiff before={before} after={value} />
          </div>
        </Suspense>
      ) : (
        plain
      )}
    </div>
  );
}
