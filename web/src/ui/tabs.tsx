import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { classes } from "./layout.tsx";

/** Tabs. The caller stores the selected tab in the URL. */
export function Tabs<Value extends string>({
  value,
  onChange,
  tabs,
  label,
  fill,
}: {
  value: Value;
  onChange(value: Value): void;
  tabs: readonly { value: Value; label: ReactNode; content: ReactNode }[];
  label: string;
  /** The content fills the page's remaining height without a margin. */
  fill?: boolean;
}) {
  return (
    <Radix.Root
      value={value}
      onValueChange={(chosen) => onChange(chosen as Value)}
      className={classes(fill && "flex min-h-0 min-w-0 flex-1 flex-col")}
    >
      <Radix.List
        aria-label={label}
        className={classes("flex shrink-0 gap-5 overflow-x-auto border-line border-b", fill && "px-6 max-sm:px-4")}
      >
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className="-mb-px whitespace-nowrap rounded-t-sm border-transparent border-b-2 py-2 font-medium text-table text-text-2 -outline-offset-2 hover:text-text data-[state=active]:border-accent-text data-[state=active]:text-text"
          >
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content
          key={tab.value}
          value={tab.value}
          className={fill ? "flex min-h-0 min-w-0 flex-1 flex-col data-[state=inactive]:hidden" : "pt-4"}
        >
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
