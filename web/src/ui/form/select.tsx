import { Check, ChevronsUpDown } from "lucide-react";
import { Select as Radix } from "radix-ui";
import { classes } from "../layout.tsx";

export interface Option<Value extends string> {
  value: Value;
  label: string;
  hint?: string;
}

/** A drop-down list. Requires an `aria-label`, or the ID that a {@link Field} provides. */
export function Select<Value extends string>({
  value,
  options,
  onChange,
  placeholder,
  className,
  ...props
}: {
  value: Value | undefined;
  options: readonly Option<Value>[];
  onChange(value: Value): void;
  placeholder?: string;
  className?: string;
  id?: string;
  disabled?: boolean;
  "aria-label"?: string;
}) {
  return (
    <Radix.Root value={value ?? ""} onValueChange={(chosen) => onChange(chosen as Value)} disabled={props.disabled}>
      <Radix.Trigger
        id={props.id}
        aria-label={props["aria-label"]}
        className={classes(
          "inline-flex h-8 min-w-0 items-center justify-between gap-2 rounded-md border border-line-strong bg-raised px-2.5 text-table",
          "transition-colors hover:not-disabled:bg-hover disabled:opacity-55 data-[placeholder]:text-text-3",
          className,
        )}
      >
        <span className="truncate">
          <Radix.Value placeholder={placeholder} />
        </span>
        <ChevronsUpDown size={13} className="shrink-0 text-text-3" />
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          position="popper"
          sideOffset={4}
          collisionPadding={8}
          className="z-50 max-h-(--radix-select-content-available-height) min-w-(--radix-select-trigger-width) max-w-96 animate-appear overflow-hidden rounded-lg border border-line bg-raised shadow-float"
        >
          <Radix.Viewport className="p-1">
            {options.map((option) => (
              <Radix.Item
                key={option.value}
                value={option.value}
                className="flex cursor-default select-none items-start gap-2 rounded-md px-2 py-1.5 text-table outline-none data-[highlighted]:bg-hover"
              >
                <span className="flex h-[18px] w-3.5 items-center text-accent-text">
                  <Radix.ItemIndicator>
                    <Check size={13} />
                  </Radix.ItemIndicator>
                </span>
                <span>
                  <Radix.ItemText>{option.label}</Radix.ItemText>
                  {option.hint && <span className="block text-text-3">{option.hint}</span>}
                </span>
              </Radix.Item>
            ))}
          </Radix.Viewport>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
