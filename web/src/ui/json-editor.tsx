import { useEffect, useRef, useState } from "react";
import { Field, TextArea } from "./field.tsx";

/** Rows of the text area: as many as the text has lines, within these. */
const LEAST_ROWS = 3;
const MAX_ROWS = 18;

/** What is meant as JSON, so that what is wrong with it is a mistake and no text. */
const JSON_BEGINS = /^\s*[[{"]/;

function textOf(value: unknown, mayBeText: boolean): string {
  if (value === undefined) return "";
  const isPlain = mayBeText && typeof value === "string" && parse(value, false, true).value === value;
  return isPlain ? value : JSON.stringify(value, null, 2);
}

/**
 * A JSON value as text. What is not JSON is said below, reaches nobody, and keeps the form around it from being sent.
 *
 * @param isObject nothing but an object will do
 * @param mayBeText what is no JSON, and does not begin like it, is taken as text
 * @param onChange gets undefined for an empty text
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
  const told = useRef(value);
  // Another value from outside takes the place of the text; what was written here comes back as it was.
  useEffect(() => {
    if (value === told.current) return;
    told.current = value;
    setText(textOf(value, mayBeText));
    setProblem(undefined);
  }, [value, mayBeText]);
  useEffect(() => area.current?.setCustomValidity(problem ?? ""), [problem]);
  const change = (written: string) => {
    const read = parse(written, isObject, mayBeText);
    setText(written);
    setProblem(read.problem);
    if (read.problem) return;
    told.current = read.value;
    onChange(read.value);
  };
  const rows = Math.min(Math.max(text.split("\n").length, mayBeText ? 1 : LEAST_ROWS), MAX_ROWS);
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
          // What is wrong stands below: the browser's bubble would say it again, over it.
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
    return fits ? { value } : { problem: "This must be an object: { … }" };
  } catch (error) {
    if (mayBeText && !JSON_BEGINS.test(text)) return { value: text };
    return { problem: `This is not JSON: ${(error as Error).message}` };
  }
}
