import { ToggleGroup } from "radix-ui";
import type { ReactNode } from "react";

export function Segmented<Value extends string>({
  value,
  options,
  onChange,
  label,
}: {
  value: Value;
  options: readonly { value: Value; label: ReactNode }[];
  onChange(value: Value): void;
  label: string;
}) {
  return (
    <ToggleGroup.Root
      type="single"
      value={value}
      onValueChange={(chosen) => chosen && onChange(chosen as Value)}
      aria-label={label}
      className="inline-flex gap-0.5 rounded-lg border border-line bg-sunken p-0.5"
    >
      {options.map((option) => (
        <ToggleGroup.Item
          key={option.value}
          value={option.value}
          className="flex h-7 items-center gap-1.5 whitespace-nowrap rounded-md px-2.5 text-table text-text-2 hover:text-text data-[state=on]:bg-raised data-[state=on]:font-medium data-[state=on]:text-text data-[state=on]:shadow-[0_1px_2px_rgb(0_0_0/0.15)]"
        >
          {option.label}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}
