import { Popover as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";

/** A small form below the button that opens it, for example for filters. */
export function Popover({ trigger, children, label }: { trigger: ReactElement; children: ReactNode; label: string }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          aria-label={label}
          align="start"
          sideOffset={4}
          collisionPadding={8}
          className="z-50 max-w-96 animate-appear rounded-lg border border-line bg-raised p-3 shadow-float"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
