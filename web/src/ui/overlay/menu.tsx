import { DropdownMenu } from "radix-ui";
import type { ReactElement, ReactNode } from "react";
import { classes } from "../layout.tsx";

export interface MenuItem {
  label: string;
  /** Sentence that describes the action. */
  hint?: string;
  icon?: ReactNode;
  danger?: boolean;
  disabled?: boolean;
  /** If defined, the item is a checkbox and the menu stays open after a click. */
  checked?: boolean;
  onSelect(): void;
}

/** @param children button that opens the menu */
export function Menu({
  children,
  items,
  align = "end",
}: {
  children: ReactElement;
  items: readonly MenuItem[];
  align?: "start" | "end";
}) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{children}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className="z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-44 max-w-80 animate-appear overflow-y-auto rounded-lg border border-line bg-raised p-1 shadow-float"
        >
          {items.map((item) => (
            <Item key={item.label} item={item} />
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

function Item({ item: { label, hint, icon, danger, disabled, checked, onSelect } }: { item: MenuItem }) {
  const className = classes(
    "flex cursor-default select-none items-start gap-2 rounded-md px-2 py-1.5 text-table outline-none",
    "data-[disabled]:opacity-55 data-[highlighted]:bg-hover",
    danger && "text-error",
  );
  const content = (
    <>
      {icon && <span className="flex h-[18px] items-center">{icon}</span>}
      <span>
        {label}
        {hint && <span className="block text-text-3">{hint}</span>}
      </span>
    </>
  );
  if (checked === undefined)
    return (
      <DropdownMenu.Item className={className} disabled={disabled} onSelect={onSelect}>
        {content}
      </DropdownMenu.Item>
    );
  return (
    <DropdownMenu.CheckboxItem
      className={className}
      checked={checked}
      disabled={disabled}
      onSelect={(event) => event.preventDefault()}
      onCheckedChange={onSelect}
    >
      <span className="w-3 text-accent-text">{checked ? "✓" : ""}</span>
      {content}
    </DropdownMenu.CheckboxItem>
  );
}
