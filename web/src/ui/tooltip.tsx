import { Tooltip as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";

export const TooltipProvider = ({ children }: { children: ReactNode }) => (
  <Radix.Provider delayDuration={350}>{children}</Radix.Provider>
);

/** A few words on hover and focus; nothing may be found here alone. */
export function Tooltip({ text, children, side }: { text: ReactNode; children: ReactElement; side?: "right" | "top" }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          side={side}
          sideOffset={5}
          collisionPadding={8}
          className="z-[60] max-w-80 animate-appear rounded-md border border-line bg-raised px-2 py-1 text-table shadow-float"
        >
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
