import type { QueryClient } from "@tanstack/react-query";
import { type AnyRoute, createRootRouteWithContext } from "@tanstack/react-router";
import type { LucideIcon } from "lucide-react";
import type { Scope } from "../../src/platform/contract/caller.ts";

/** The route that all pages are below of: the frame (frame/frame.tsx). Routes may ask for data before their page is loaded. */
export const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()();

/** A place to go, in the palette. */
export interface Destination {
  label: string;
  /** What it is, in a word, and what else is known of it. */
  hint?: string;
  /** Below /app: `/threads/3f2a...`. */
  to: string;
}

/** What the palette finds besides the pages. */
export interface PaletteSource {
  /** Head of the group: "Threads". */
  group: string;
  /** @param text what was typed; empty at first. At most about ten are shown. */
  find(text: string, signal: AbortSignal): Promise<Destination[]>;
}

/** One of the pages that the side bar leads to, with everything below it. */
export interface Page {
  nav: {
    label: string;
    /** Below /app: "/threads". */
    to: string;
    icon: LucideIcon;
    /** What the page needs; without it the entry is not shown. */
    scope?: Scope;
  };
  /** All have {@link rootRoute} as their parent, or each other. Components are loaded lazily (`lazyRouteComponent`). */
  routes: readonly AnyRoute[];
  palette?: readonly PaletteSource[];
}
