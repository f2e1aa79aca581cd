import { useSyncExternalStore } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** Local storage key of the theme. index.html reads the same key before the first paint. */
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

/** Applies changes of the system theme and changes made in other tabs. Called once at startup. */
export function followTheme(): void {
  matchMedia(DARK).addEventListener("change", apply);
  window.addEventListener("storage", apply);
}

/** Selected theme. Re-renders the caller when the theme changes, including in another tab. */
export const useTheme = (): Theme =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenTheme);
