import type { QueryClient } from "@tanstack/react-query";
import { type AnyRoute, createRootRouteWithContext } from "@tanstack/react-router";
import type { LucideIcon } from "lucide-react";
import type { Scope } from "../../src/platform/contract/caller.ts";

/** The parent route of all pages; it renders frame/frame.tsx. Routes may prefetch data before their page is loaded. */
export const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()();

/** A string parameter of a URL; undefined if empty. The router parses a text such as `7` or `true` as JSON. */
export const textOf = (value: unknown): string | undefined =>
  ["string", "number", "boolean"].includes(typeof value) ? String(value) || undefined : undefined;

/** A search result in the palette. */
export interface Destination {
  label: string;
  /** A short description. */
  hint?: string;
  /** The path below /app: `/threads/3f2a...`. */
  to: string;
}

/** A source of search results in the palette. */
export interface PaletteSource {
  /** The heading of the group: "Threads". */
  group: string;
  /** @param text the query; empty at first. Return about ten results at most. */
  find(text: string, signal: AbortSignal): Promise<Destination[]>;
}

export interface Page {
  nav: {
    label: string;
    /** The path below /app: "/threads". */
    to: string;
    icon: LucideIcon;
    /** The scope that the page requires; the entry is hidden without it. */
    scope?: Scope;
  };
  /** Routes below {@link rootRoute}. Components are loaded lazily (`lazyRouteComponent`). */
  routes: readonly AnyRoute[];
  palette?: readonly PaletteSource[];
}
