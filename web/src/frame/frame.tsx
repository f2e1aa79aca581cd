import { Outlet } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { PaletteOpener } from "./header.tsx";
import { KeyList } from "./key-list.tsx";
import { useKeyboard, useKeys } from "./keys.ts";
import { SideBar } from "./side-bar.tsx";

const loadPalette = () => import("./palette.tsx");
const Palette = lazy(loadPalette);

/** Layout around all pages, with the side bar, the command palette and the keyboard shortcuts. */
export function Frame() {
  const [open, setOpen] = useState<"palette" | "keys">();
  const close = () => setOpen(undefined);
  useKeyboard();
  // Loads the palette after the page, so that opening the palette is immediate and no keystroke is lost.
  useEffect(() => void loadPalette(), []);
  useKeys({
    "mod+k": { does: "Search pages, agents, threads and experiments", run: () => setOpen("palette") },
    "?": { does: "Show keyboard shortcuts", run: () => setOpen("keys") },
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
