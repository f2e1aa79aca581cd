import { useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { useDeferredValue, useState } from "react";
import { mayUse } from "../../../src/platform/contract/caller.ts";
import { sessionQuery } from "../api/session.ts";
import type { Destination } from "../page.ts";
import { pages } from "../pages.ts";
import { BLOCKS_SHORTCUTS } from "./keys.ts";

const ITEM = "flex cursor-default items-center gap-3 rounded-md px-2.5 py-1.5 text-body data-[selected=true]:bg-hover";
const GROUP =
  "[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-table [&_[cmdk-group-heading]]:text-text-3";

/** Command palette that searches pages and the registered search sources. */
export default function Palette({ onClose }: { onClose(): void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState("");
  const query = useDeferredValue(text.trim());
  const navigate = useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const shown = pages.filter(({ nav }) => !nav.scope || !session || mayUse(session, nav.scope));
  const sources = shown.flatMap((page) => page.palette ?? []);
  const found = useQueries({
    queries: sources.map((source) => ({
      queryKey: ["palette", source.group, query],
      queryFn: ({ signal }: { signal: AbortSignal }) => source.find(query, signal),
      retry: false,
    })),
  });
  const go = (to: string) => {
    onClose();
    void navigate({ to });
  };
  const ownPages = shown
    .map(({ nav }): Destination => ({ label: nav.label, to: nav.to }))
    .concat({ label: "Home", to: "/" })
    .filter(({ label }) => label.toLowerCase().includes(query.toLowerCase()));
  const groups = [
    { heading: "Pages", destinations: ownPages },
    ...sources.map(({ group }, index) => ({ heading: group, destinations: found[index]?.data ?? [] })),
  ];
  // A keystroke may remove the selected item from the results. Enter then opens the first item.
  const values = groups.flatMap(({ heading, destinations }) => destinations.map((each) => itemOf(heading, each)));
  const value = values.includes(chosen) ? chosen : (values[0] ?? "");
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 animate-appear bg-scrim" />
        <Dialog.Content
          {...BLOCKS_SHORTCUTS}
          aria-describedby={undefined}
          className="fixed top-[12vh] left-1/2 z-50 w-[min(560px,calc(100vw-24px))] -translate-x-1/2 animate-appear overflow-hidden rounded-xl border border-line bg-raised shadow-float"
        >
          <Dialog.Title className="sr-only">Search</Dialog.Title>
          {/* The sources return filtered results, so cmdk must not filter again. */}
          <Command shouldFilter={false} label="Search" value={value} onValueChange={setChosen}>
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder="Search pages, agents, threads, traces, experiments…"
              className="h-11 w-full border-line border-b bg-transparent px-4 text-body outline-none"
            />
            <Command.List className="max-h-[50vh] overflow-y-auto p-1.5">
              <Command.Empty className="px-2.5 py-6 text-center text-text-2">
                {found.some((source) => source.isFetching) ? "Searching…" : "No results"}
              </Command.Empty>
              {groups.map(({ heading, destinations }) => (
                <Group key={heading} heading={heading} destinations={destinations} onGo={go} />
              ))}
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Unique key of an item. Includes the heading, because two groups may contain the same page. */
const itemOf = (heading: string, { label, to }: Destination): string => `${heading} ${label} ${to}`;

function Group({
  heading,
  destinations,
  onGo,
}: {
  heading: string;
  destinations: readonly Destination[];
  onGo(to: string): void;
}) {
  if (destinations.length === 0) return null;
  return (
    <Command.Group heading={heading} className={GROUP}>
      {destinations.map((each) => {
        const value = itemOf(heading, each);
        return (
          <Command.Item key={value} value={value} onSelect={() => onGo(each.to)} className={ITEM}>
            <span className="truncate">{each.label}</span>
            {each.hint && <span className="ml-auto shrink-0 text-table text-text-3">{each.hint}</span>}
          </Command.Item>
        );
      })}
    </Command.Group>
  );
}
