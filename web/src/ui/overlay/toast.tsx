import { X } from "lucide-react";
import { useEffect, useState } from "react";
import { createStore } from "../../store.ts";
import { Button } from "../button.tsx";

/** Time until a toast closes. While the pointer or the focus is on a toast, all toasts stay open, and the time starts again afterwards. */
const SHOWN_MS = 6_000;

interface ToastOptions {
  error?: boolean;
  /** Leads to the result. */
  action?: { label: string; run(): void };
}

interface ToastRecord extends ToastOptions {
  id: number;
  text: string;
}

const shown = createStore<readonly ToastRecord[]>([]);
let next = 0;

/** Shows the result of an action, or an error, for some seconds. */
export const toast = (text: string, options: ToastOptions = {}): void =>
  shown.set([...shown.get().slice(-2), { id: next++, text, ...options }]);

const close = (id: number): void => shown.set(shown.get().filter((each) => each.id !== id));

/**
 * Region that shows the toasts. Render it once in the app.
 *
 * Unlike dialogs and menus, toasts are not dismissable layers: Esc and a click outside apply to the open dialog, even if a toast appeared
 * later.
 */
export function Toasts() {
  const toasts = shown.use();
  const [isHeld, setHeld] = useState(false);
  const hold = () => setHeld(true);
  const release = () => setHeld(false);
  return (
    <section
      aria-label="Notifications"
      onPointerEnter={hold}
      onPointerLeave={release}
      onFocus={hold}
      onBlur={release}
      // Screen readers can reach a live region even while a dialog is open.
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
            // The browser fires no pointerleave event for a removed element.
            release();
          }}
        />
      ))}
    </section>
  );
}

function Toast({ id, text, error, action, isHeld, onClose }: ToastRecord & { isHeld: boolean; onClose(): void }) {
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
      {action && (
        <Button
          small
          onClick={() => {
            action.run();
            onClose();
          }}
        >
          {action.label}
        </Button>
      )}
      <Button look="quiet" small square aria-label="Close" onClick={onClose}>
        <X size={14} />
      </Button>
    </div>
  );
}

/** Whether an element is part of a toast, including a toast that has been removed. */
export const isOnToast = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("[data-toast]") !== null;
