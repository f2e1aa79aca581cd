import { Outlet } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { PaletteOpener } from "./header.tsx";
import { KeyList } from "./key-list.tsx";
import { useKeyboard, useKeys } from "./keys.ts";
import { SideBar } from "./side-bar.tsx";

const loadPalette = () => import("./palette.tsx");
const Palette = lazy(loadPalette);

/** What all pages have around them. */
export function Frame() {
  const [open, setOpen] = useState<"palette" | "keys">();
  const close = () => setOpen(undefined);
  useKeyboard();
  // Loaded after the page, so that it is there at once when it is asked for: people type on while it opens.
  useEffect(() => void loadPalette(), []);
  useKeys({
    "mod+k": { does: "Find a page, or anything else by its name", run: () => setOpen("palette") },
    "?": { does: "Show these keys", run: () => setOpen("keys") },
  });
  return (
    <PaletteOpener value={() => setOpen("palette")}>
      <div className="flex h-full max-sm:flex-col">
        <SideBar />
        <div className="min-h-0 min-w-0 flex-1">
          <Outlet />
        </div>
      </div>
      {open === "palette" && (
        <Suspense>
          <Palette onClose={close} />
        </Suspense>
      )}
      <KeyList open={open === "keys"} onClose={close} />
    </PaletteOpener>
  );
}
