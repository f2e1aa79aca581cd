import { useEffect, useRef } from "react";

export interface Key {
  /** The description in the list of shortcuts: "Next row". */
  does: string;
  run(): void;
}

/** By the name of the key in the browser (`j`, `Enter`, `?`), or `mod+k` for ⌘ or Ctrl. */
export type Keys = Record<string, Key>;

/** The registered shortcuts; the last registration wins. */
const active: { current: Keys }[] = [];

/** Registers shortcuts while the component is mounted. A later component overrides the same key of an earlier one. */
export function useKeys(keys: Keys): void {
  const entry = useRef(keys);
  entry.current = keys;
  useEffect(() => {
    active.push(entry);
    return () => void active.splice(active.indexOf(entry), 1);
  }, []);
}

export const activeKeys = (): Keys => Object.assign({}, ...active.map((entry) => entry.current));

/** In text inputs and lists, keys are not shortcuts. */
const isWriting = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  target.closest("input, textarea, select, [contenteditable], [role=menu], [role=listbox]") !== null;

/** These elements handle Enter and Space themselves. */
const isPressed = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("button, a, summary, [role=tab]") !== null;

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
