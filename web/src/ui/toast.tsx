import { X } from "lucide-react";
import { Toast as Radix } from "radix-ui";
import { useSyncExternalStore } from "react";
import { Button } from "./button.tsx";

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

/** Where toasts appear; once in the app. */
export function Toasts() {
  const toasts = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
  return (
    <Radix.Provider duration={6_000} swipeDirection="right">
      {toasts.map(({ id, text, error }) => (
        <Radix.Root
          key={id}
          type={error ? "foreground" : "background"}
          onOpenChange={(open) => !open && show(shown.filter((each) => each.id !== id))}
          className="flex animate-slide items-start gap-2 rounded-lg border border-line bg-raised py-2 pr-2 pl-3 text-table shadow-float"
        >
          <Radix.Description className={error ? "flex-1 text-error" : "flex-1"}>{text}</Radix.Description>
          <Radix.Close asChild>
            <Button look="quiet" small square aria-label="Close">
              <X size={14} />
            </Button>
          </Radix.Close>
        </Radix.Root>
      ))}
      <Radix.Viewport className="fixed right-4 bottom-4 z-[70] grid w-80 max-w-[calc(100vw-32px)] gap-2 outline-none max-sm:bottom-20" />
    </Radix.Provider>
  );
}
