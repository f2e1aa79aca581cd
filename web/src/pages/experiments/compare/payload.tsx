import { lazy, Suspense } from "react";
import { JsonTree } from "../../../ui/json-tree.tsx";

/** What compares texts is loaded with the first difference. */
const OutputDiff = lazy(() => import("./output-diff.tsx"));

type Value = Record<string, unknown> | null | undefined;

/** The text where it is the only thing in the payload: `{"answer": "Paris"}` reads `Paris`. */
export function onlyText(value: Value): string | undefined {
  const values = Object.values(value ?? {});
  return values.length === 1 && typeof values[0] === "string" ? values[0] : undefined;
}

/**
 * What a run was given, or answered: as a text or a tree.
 *
 * @param before marks the differences to it; undefined for none
 */
export function Payload({ value, before }: { value: Value; before?: Value }) {
  if (value === null || value === undefined) return <p className="text-table text-text-3">Nothing</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: long ones scroll, and the keyboard must be able to
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
  const text = onlyText(value);
  return text === undefined ? (
    <JsonTree value={value} open={2} />
  ) : (
    <p className="whitespace-pre-wrap break-words">{text}</p>
  );
}
