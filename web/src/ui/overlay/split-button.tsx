import { ChevronDown } from "lucide-react";
import { Button, type ButtonProps } from "../button.tsx";
import { Menu, type MenuItem } from "./menu.tsx";

/** Button for the main action, with a menu of alternatives and their descriptions. */
export function SplitButton({
  children,
  items,
  menuLabel,
  look,
  ...props
}: ButtonProps & { items: readonly MenuItem[]; menuLabel: string }) {
  return (
    <div className="inline-flex">
      <Button look={look} className="rounded-r-none" {...props}>
        {children}
      </Button>
      <Menu items={items}>
        <Button look={look} aria-label={menuLabel} disabled={props.disabled} className="-ml-px rounded-l-none px-1.5">
          <ChevronDown size={14} />
        </Button>
      </Menu>
    </div>
  );
}
