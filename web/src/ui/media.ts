import { useSyncExternalStore } from "react";

/** Where the side bar is at the bottom and tables are cards. */
export const isNarrow = "(max-width: 639px)";

/** Whether a media query holds, now and when it changes. */
export const useMedia = (query: string): boolean =>
  useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => matchMedia(query).matches,
  );
