import { useSyncExternalStore } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** Also read by public/theme.js before the first paint. */
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

/** Follows changes of the system theme and of other tabs. Called once at startup. */
export function followTheme(): void {
  matchMedia(DARK).addEventListener("change", apply);
  window.addEventListener("storage", apply);
}

/** The selected theme. Updates when another tab changes it. */
export const useTheme = (): Theme =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenTheme);
