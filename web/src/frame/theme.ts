import { useSyncExternalStore } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** Read by public/theme.js as well, before anything is drawn. */
const KEY = "threadmill.theme";
const DARK = "(prefers-color-scheme: dark)";
const listeners = new Set<() => void>();

const chosenTheme = (): Theme => {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
};

function apply(): void {
  const theme = chosenTheme();
  const dark = theme === "system" ? matchMedia(DARK).matches : theme === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  apply();
}

/** From now on the pages follow the system, and what is chosen in another tab. Once, at the start. */
export function followTheme(): void {
  matchMedia(DARK).addEventListener("change", apply);
  window.addEventListener("storage", apply);
}

/** The theme that was chosen, in this tab or another. */
export const useTheme = (): Theme =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenTheme);
