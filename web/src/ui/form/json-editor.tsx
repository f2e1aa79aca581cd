import { useEffect, useRef, useState } from "react";
import { Field, TextArea } from "./field.tsx";

/** The text area has as many rows as the text has lines, within these limits. */
const MIN_ROWS = 3;
const MAX_ROWS = 18;

/** The start of an intended JSON value: a syntax error after it is an error, not plain text. */
const JSON_START = /^\s*[[{"]/;

function textOf(value: unknown, mayBeText: boolean): string {
  if (value === undefined) return "";
  const isPlain = mayBeText && typeof value === "string" && parse(value, false, true).value === value;
  return isPlain ? value : JSON.stringify(value, null, 2);
}

/**
 * Edits a JSON value as text. Invalid JSON shows an error, is not reported to the caller, and blocks the submission of the form.
 *
 * @param isObject accepts objects only
 * @param mayBeText accepts text that does not start like JSON as a string
 * @param onChange receives undefined for an empty text
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
  // A new value from the caller replaces the text. A value that was reported from here keeps its formatting.
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
          // Suppresses the message of the browser: the error is shown below the field.
          onInvalid={(event) => {
            event.preventDefault();
            event.currentTarget.focus();
          }}
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
