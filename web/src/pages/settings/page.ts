import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Settings } from "lucide-react";
import { type Page, rootRoute, whenOnline } from "../../page.ts";

export const SECTIONS = ["general", "keys", "workspaces"] as const;
export type Section = (typeof SECTIONS)[number];

export const settingsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/settings",
  validateSearch: (search): { section?: Section } => ({
    section: SECTIONS.find((section) => section === search.section),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./settings-page.tsx")),
    "SettingsPage",
  ),
});

export const settings: Page = {
  nav: { label: "Settings", to: "/settings", icon: Settings },
  routes: [settingsRoute],
  palette: [
    {
      group: "Settings",
      find: async (text) =>
        [
          { label: "API keys", hint: "Settings", to: "/settings?section=keys" },
          { label: "Workspaces", hint: "Settings", to: "/settings?section=workspaces" },
          { label: "Theme", hint: "Settings", to: "/settings" },
        ].filter(({ label }) => text !== "" && label.toLowerCase().includes(text.toLowerCase())),
    },
  ],
};
