import { Slot } from "radix-ui";
import type { ComponentProps } from "react";
import { classes } from "./layout.tsx";

const LOOKS = {
  /** The main action. Use one primary button per view. */
  primary: "bg-accent text-on-accent hover:not-disabled:bg-accent-hover",
  plain: "border border-line-strong bg-raised text-text hover:not-disabled:bg-hover",
  /** For table rows and toolbars. */
  quiet: "text-text-2 hover:not-disabled:bg-hover hover:not-disabled:text-text",
  danger: "border border-line-strong bg-raised text-error hover:not-disabled:bg-error-bg",
} as const;

export interface ButtonProps extends ComponentProps<"button"> {
  look?: keyof typeof LOOKS;
  /** 24 px high, for table rows. */
  small?: boolean;
  /** Icon without text. Requires an `aria-label`. */
  square?: boolean;
  /** Renders the child element, such as a link, with the button's style. */
  asChild?: boolean;
}

export function Button({ look = "plain", small, square, asChild, className, ...props }: ButtonProps) {
  const Element = asChild ? Slot.Root : "button";
  return (
    <Element
      type={asChild ? undefined : "button"}
      className={classes(
        "inline-flex shrink-0 select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-md font-medium text-table",
        "transition-colors disabled:cursor-not-allowed disabled:opacity-55",
        small ? "h-6" : "h-8",
        square ? (small ? "w-6" : "w-8") : small ? "px-2" : "px-3",
        LOOKS[look],
        className,
      )}
      {...props}
    />
  );
}
