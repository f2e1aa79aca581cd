import { useEffect, useRef } from "react";

export interface Key {
  /** Description in the list of shortcuts, for example "Next row". */
  does: string;
  run(): void;
}

/** Shortcuts by `KeyboardEvent.key` (`j`, `Enter`, `?`), or by `mod+k` for ⌘ K and Ctrl K. */
export type Keys = Record<string, Key>;

/** Registered shortcuts. For the same key, the last registration wins. */
const active: { current: Keys }[] = [];

/** Registers shortcuts while the component is mounted. They override earlier registrations of the same key. */
export function useKeys(keys: Keys): void {
  const entry = useRef(keys);
  entry.current = keys;
  useEffect(() => {
    active.push(entry);
    return () => void active.splice(active.indexOf(entry), 1);
  }, []);
}

export const activeKeys = (): Keys => Object.assign({}, ...active.map((entry) => entry.current));

/** Whether the user is typing or using a list or menu. Shortcuts without ⌘ or Ctrl are then disabled. */
const isWriting = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  target.closest(`input:not(${OPTIONS}), textarea, select, [contenteditable], [role=menu], [role=listbox]`) !== null;

/** Radio buttons and checkboxes handle only the arrow keys and Space. */
const OPTIONS = "[type=radio], [type=checkbox]";
const isChoosing = (key: string, target: EventTarget | null): boolean =>
  (key === " " || key.startsWith("Arrow")) && target instanceof Element && target.matches(OPTIONS);

/** Whether the element handles Enter and Space itself. */
const isPressed = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("button, a, summary, [role=tab]") !== null;

/** Attribute of dialogs. The shortcuts of the page behind an open dialog are disabled. */
export const BLOCKS_SHORTCUTS = { "data-blocks-shortcuts": "" };

/** Keys that may be held down. Other shortcuts are executed once, because they act on an item that the user has to see first. */
const isRepeatable = (key: string): boolean => key === "j" || key === "k" || key.startsWith("Arrow");

export function useKeyboard(): void {
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || event.altKey) return;
      if (event.repeat && !isRepeatable(event.key)) return;
      if (document.querySelector("[data-blocks-shortcuts]")) return;
      const mod = event.metaKey || event.ctrlKey;
      if (!mod && (isWriting(event.target) || isChoosing(event.key, event.target))) return;
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
