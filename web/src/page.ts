import type { QueryClient } from "@tanstack/react-query";
import { type AnyRoute, createRootRouteWithContext } from "@tanstack/react-router";
import type { LucideIcon } from "lucide-react";
import type { Scope } from "../../src/platform/contract/caller.ts";

/** Parent route of all pages, rendered by frame/frame.tsx. Child routes can prefetch data while the page's code loads. */
export const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()();

/**
 * Delays the import of a page's code until the browser is online. The router reloads the page when an import fails, and offline, the browser
 * would replace the app with its error page.
 */
export const whenOnline =
  <Module>(load: () => Promise<Module>): (() => Promise<Module>) =>
  async () => {
    for (;;) {
      if (!navigator.onLine) await new Promise((resolve) => window.addEventListener("online", resolve, { once: true }));
      try {
        return await load();
      } catch (error) {
        if (navigator.onLine) throw error;
      }
    }
  };

/** Reads a string parameter of the URL, which the router may have parsed as a number or boolean. Returns undefined if it is empty. */
export const textOf = (value: unknown): string | undefined =>
  ["string", "number", "boolean"].includes(typeof value) ? String(value) || undefined : undefined;

/** A search result in the command palette. */
export interface Destination {
  label: string;
  /** Short description to the right of the label. */
  hint?: string;
  /** Path below /app, for example `/threads/3f2a...`. */
  to: string;
}

/** A source of search results for the command palette. */
export interface PaletteSource {
  /** Heading of the source's results, for example "Threads". */
  group: string;
  /** Finds at most about ten results. @param text the search text; empty when the palette opens */
  find(text: string, signal: AbortSignal): Promise<Destination[]>;
}

export interface Page {
  nav: {
    label: string;
    /** Path below /app, for example "/threads". */
    to: string;
    icon: LucideIcon;
    /** Scope that the page requires. Without this scope, the sidebar hides the entry. */
    scope?: Scope;
    /** Number that the sidebar shows beside the label, such as the number of waiting threads. */
    count?: { useCount(): number | undefined; title: string };
  };
  /** Child routes of {@link rootRoute}. Load their components with `lazyRouteComponent`. */
  routes: readonly AnyRoute[];
  palette?: readonly PaletteSource[];
}
