import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { MessageSquareCode } from "lucide-react";
import { type Page, rootRoute, textOf, whenOnline } from "../../page.ts";
import { findPrompts } from "./queries.ts";

export const promptsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/prompts",
  validateSearch: (search): { q?: string } => ({ q: textOf(search.q) }),
  component: lazyRouteComponent(
    whenOnline(() => import("./prompts-page.tsx")),
    "PromptsPage",
  ),
});

/** The commit is part of the path, because the router parses a hash such as `12e45678` in the query string as a number. */
export const promptRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/prompts/$name/{-$commit}",
  component: lazyRouteComponent(
    whenOnline(() => import("./prompt-page.tsx")),
    "PromptPage",
  ),
});

const PALETTE_LIMIT = 6;

export const prompts: Page = {
  nav: { label: "Prompts", to: "/prompts", icon: MessageSquareCode, scope: "experiments" },
  routes: [promptsRoute, promptRoute],
  palette: [
    {
      group: "Prompts",
      find: async (text, signal) => {
        const { repos } = await findPrompts({ query: text || undefined, limit: PALETTE_LIMIT }, signal);
        return repos.map(({ repo_handle }) => ({ label: repo_handle, hint: "Prompt", to: `/prompts/${repo_handle}` }));
      },
    },
  ],
};
