import { X } from "lucide-react";
import { useEffect, useState, useSyncExternalStore } from "react";
import { Button } from "./button.tsx";

/** How long one is shown while nobody points at it, in ms. */
const SHOWN_MS = 6_000;

interface Shown {
  id: number;
  text: string;
  error: boolean;
}

let shown: readonly Shown[] = [];
let next = 0;
const listeners = new Set<() => void>();

function show(changed: readonly Shown[]): void {
  shown = changed;
  for (const listener of listeners) listener();
}

/** Says for some seconds what has happened: a deed that is done, or why it failed. */
export const toast = (text: string, options: { error?: boolean } = {}): void =>
  show([...shown.slice(-2), { id: next++, text, error: options.error ?? false }]);

const close = (id: number): void => show(shown.filter((each) => each.id !== id));

/**
 * Where toasts appear; once in the app. They are no layers like dialogs and menus: Esc and a click beside them belong to what is open,
 * however much later a toast came.
 */
export function Toasts() {
  const toasts = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
  const [isHeld, setHeld] = useState(false);
  const hold = () => setHeld(true);
  const letGo = () => setHeld(false);
  return (
    <section
      aria-label="Notices"
      onPointerEnter={hold}
      onPointerLeave={letGo}
      onFocus={hold}
      onBlur={letGo}
      // Where it is live, it is not hidden from screen readers while a dialog is open.
      aria-live="polite"
      className="pointer-events-none fixed right-4 bottom-4 z-[70] grid w-80 max-w-[calc(100vw-32px)] gap-2 max-sm:bottom-20"
    >
      {toasts.map((each) => (
        <Toast
          key={each.id}
          {...each}
          isHeld={isHeld}
          onClose={() => {
            close(each.id);
            // What is gone under the pointer is not told to be left.
            letGo();
          }}
        />
      ))}
    </section>
  );
}

function Toast({ id, text, error, isHeld, onClose }: Shown & { isHeld: boolean; onClose(): void }) {
  useEffect(() => {
    if (isHeld) return;
    const timer = setTimeout(close, SHOWN_MS, id);
    return () => clearTimeout(timer);
  }, [id, isHeld]);
  return (
    <div
      data-toast
      role={error ? "alert" : undefined}
      className="pointer-events-auto flex animate-slide items-start gap-2 rounded-lg border border-line bg-raised py-2 pr-2 pl-3 text-table shadow-float"
    >
      <p className={error ? "flex-1 text-error" : "flex-1"}>{text}</p>
      <Button look="quiet" small square aria-label="Close" onClick={onClose}>
        <X size={14} />
      </Button>
    </div>
  );
}

/** Whether it is a part of a toast, also of one that is gone by now. */
export const isOnToast = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("[data-toast]") !== null;
