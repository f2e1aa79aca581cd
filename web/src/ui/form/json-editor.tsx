import { useEffect, useRef, useState } from "react";
import { Field, TextArea } from "./field.tsx";

/** Limits of the text area's height in rows. With `mayBeText`, the minimum is 1. */
const MIN_ROWS = 3;
const MAX_ROWS = 18;

/** Matches text that starts like JSON. Such text is an error if it is not valid JSON; other text may be a plain string. */
const JSON_START = /^\s*[[{"]/;

function textOf(value: unknown, mayBeText: boolean): string {
  if (value === undefined) return "";
  const isPlain = mayBeText && typeof value === "string" && parse(value, false, true).value === value;
  return isPlain ? value : JSON.stringify(value, null, 2);
}

/**
 * Edits a JSON value as text. While the JSON is invalid, the editor shows an error, does not call `onChange`, and blocks the form's
 * submission.
 *
 * @param isObject accepts only objects
 * @param mayBeText treats invalid JSON that does not start with `{`, `[` or a quotation mark as a string
 * @param onChange receives undefined for an empty text, or `{}` if `isObject` is set
 */
export function JsonEditor({
  label,
  hint,
  value,
  isObject = false,
  mayBeText = false,
  onChange,
  autoFocus,
}: {
  label: string;
  hint?: string;
  value: unknown;
  isObject?: boolean;
  mayBeText?: boolean;
  onChange(value: unknown): void;
  autoFocus?: boolean;
}) {
  const [text, setText] = useState(() => textOf(value, mayBeText));
  const [problem, setProblem] = useState<string>();
  const area = useRef<HTMLTextAreaElement>(null);
  const reported = useRef(value);
  // Replaces the text when the caller sets a new value. A value that the editor reported keeps its formatting.
  useEffect(() => {
    if (value === reported.current) return;
    reported.current = value;
    setText(textOf(value, mayBeText));
    setProblem(undefined);
  }, [value, mayBeText]);
  useEffect(() => area.current?.setCustomValidity(problem ?? ""), [problem]);
  const change = (written: string) => {
    const read = parse(written, isObject, mayBeText);
    setText(written);
    setProblem(read.problem);
    if (read.problem) return;
    reported.current = read.value;
    onChange(read.value);
  };
  const rows = Math.min(Math.max(text.split("\n").length, mayBeText ? 1 : MIN_ROWS), MAX_ROWS);
  return (
    <Field label={label} hint={hint} error={problem}>
      {(props) => (
        <TextArea
          {...props}
          ref={area}
          mono={!mayBeText}
          rows={rows}
          autoFocus={autoFocus}
          value={text}
          onChange={(event) => change(event.target.value)}
        />
      )}
    </Field>
  );
}

function parse(text: string, isObject: boolean, mayBeText: boolean): { value?: unknown; problem?: string } {
  if (text.trim() === "") return isObject ? { value: {} } : {};
  try {
    const value: unknown = JSON.parse(text);
    const fits = !isObject || (typeof value === "object" && value !== null && !Array.isArray(value));
    return fits ? { value } : { problem: "Must be a JSON object: { … }" };
  } catch (error) {
    if (mayBeText && !JSON_START.test(text)) return { value: text };
    return { problem: `Invalid JSON: ${(error as Error).message}` };
  }
}
