import { Outlet, useLocation } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { IS_PUBLIC_PAGE } from "../api/request.ts";
import { dependsOnTarget, useTarget } from "../api/target.ts";
import { ConnectionBanner } from "./connection.tsx";
import { PaletteOpener } from "./header.tsx";
import { KeyList } from "./key-list.tsx";
import { useKeyboard, useKeys } from "./keys.ts";
import { SideBar } from "./side-bar.tsx";

const loadPalette = () => import("./palette.tsx");
const Palette = lazy(loadPalette);
/** Loaded later, because lists of options are not part of the first page. */
const TargetBar = lazy(async () => ({ default: (await import("./target-bar.tsx")).TargetBar }));

/** Layout around all pages, with the sidebar, the command palette and the keyboard shortcuts. Public pages have shortcuts only. */
export function Frame() {
  const [open, setOpen] = useState<"palette" | "keys">();
  const close = () => setOpen(undefined);
  useKeyboard();
  useKeys({ "?": { does: "Show keyboard shortcuts", run: () => setOpen("keys") } });
  return (
    <>
      {IS_PUBLIC_PAGE ? (
        <Outlet />
      ) : (
        <AppFrame isSearching={open === "palette"} onSearch={() => setOpen("palette")} onClose={close} />
      )}
      <KeyList open={open === "keys"} onClose={close} />
    </>
  );
}

/** The place of the target bar until it is loaded: a page that moves while the user clicks loses the click. */
function TargetBarSpace() {
  const target = useTarget();
  const { pathname } = useLocation();
  return target !== undefined && dependsOnTarget(pathname) ? <div className="h-10 shrink-0" /> : null;
}

function AppFrame({ isSearching, onSearch, onClose }: { isSearching: boolean; onSearch(): void; onClose(): void }) {
  // Loads the palette after the page, so that opening the palette is immediate and no keystroke is lost.
  useEffect(() => void loadPalette(), []);
  useKeys({ "mod+k": { does: "Search pages, agents, threads, traces and experiments", run: onSearch } });
  return (
    <PaletteOpener value={onSearch}>
      <div className="flex h-full max-sm:flex-col">
        <SideBar />
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <ConnectionBanner />
          <Suspense fallback={<TargetBarSpace />}>
            <TargetBar />
          </Suspense>
          <div className="min-h-0 flex-1">
            <Outlet />
          </div>
        </div>
      </div>
      {isSearching && (
        <Suspense>
          <Palette onClose={onClose} />
        </Suspense>
      )}
    </PaletteOpener>
  );
}
