import { useEffect, useRef } from "react";

export interface Key {
  /** What it does, for the list that `?` opens: "Next row". */
  does: string;
  run(): void;
}

/** By the key as the browser names it (`j`, `Enter`, `?`), or with ⌘ or Ctrl as `mod+k`. */
export type Keys = Record<string, Key>;

/** What holds now; the last one comes first. */
const active: { current: Keys }[] = [];

/** Keys of the page while the component is there. A key of a component that came later hides the same of an earlier one. */
export function useKeys(keys: Keys): void {
  const entry = useRef(keys);
  entry.current = keys;
  useEffect(() => {
    active.push(entry);
    return () => void active.splice(active.indexOf(entry), 1);
  }, []);
}

/** All that hold now, each once. */
export const activeKeys = (): Keys => Object.assign({}, ...active.map((entry) => entry.current));

/** Where letters are written; their keys are no commands. */
const isWriting = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  target.closest("input, textarea, select, [contenteditable], [role=menu], [role=listbox]") !== null;

/** In these Enter and the space bar do something of their own. */
const isPressed = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("button, a, summary, [role=tab]") !== null;

/** Listens for all keys; once in the app. */
export function useKeyboard(): void {
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || event.altKey) return;
      const mod = event.metaKey || event.ctrlKey;
      if (!mod && isWriting(event.target)) return;
      if ((event.key === "Enter" || event.key === " ") && isPressed(event.target)) return;
      const key = activeKeys()[mod ? `mod+${event.key.toLowerCase()}` : event.key];
      if (!key) return;
      event.preventDefault();
      key.run();
    };
    window.addEventListener("keydown", listener);
    return () => window.removeEventListener("keydown", listener);
  }, []);
}
