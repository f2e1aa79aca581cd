import { useEffect, useRef, useState } from "react";

/** Delay between the last keystroke and the call of `onChange`. */
const DEBOUNCE_MS = 250;

/**
 * Text of an input, reported to the caller after a pause in typing. A new value from the caller, for example after browser navigation,
 * replaces the text.
 */
export function useDebounced(value: string, onChange: (text: string) => void): [string, (text: string) => void] {
  const [text, setText] = useState(value);
  const reported = useRef(value);
  const seen = useRef(value);
  // Until the caller has the reported text, it passes its previous value.
  if (seen.current !== value) {
    seen.current = value;
    // The caller may remove spaces around the text that was reported.
    if (reported.current.trim() !== value.trim() && text !== value) setText(value);
    reported.current = value;
  }
  const report = useRef(onChange);
  report.current = onChange;
  useEffect(() => {
    if (text === reported.current) return;
    const timer = setTimeout(() => {
      reported.current = text;
      report.current(text);
    }, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText];
}
