import { Link } from "@tanstack/react-router";
import { ChevronRight, Search } from "lucide-react";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { Button } from "../ui/button.tsx";
import { classes } from "../ui/layout.tsx";
import { MOD } from "./key-list.tsx";

/** Opens the palette. Undefined on public pages, which have none. */
export const PaletteOpener = createContext<(() => void) | undefined>(undefined);

export interface Crumb {
  label: string;
  to: string;
}

export interface PageProps {
  title: string;
  crumbs?: readonly Crumb[];
  /** Content beside the title, such as a status or an ID. */
  beside?: ReactNode;
  actions?: ReactNode;
  /** Whether the content fills the page's height without a margin and has its own scroll area, like a table. */
  fill?: boolean;
  children: ReactNode;
}

/** Frame of every page: a header with breadcrumb, title and actions, and the content below. */
export function Page({ title, crumbs = [], beside, actions, fill, children }: PageProps) {
  const openPalette = useContext(PaletteOpener);
  useEffect(() => {
    document.title = `${title} · Threadmill`;
  }, [title]);
  return (
    <div className="flex h-full min-w-0 flex-col">
      <header className="flex min-h-14 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-line border-b px-6 py-2.5 max-sm:px-4">
        <div className="min-w-0 flex-1 max-sm:min-w-44">
          {crumbs.length > 0 && (
            <nav aria-label="Breadcrumb" className="flex min-w-0 items-center gap-1 text-table text-text-3">
              {crumbs.map((crumb, index) => (
                <span key={crumb.to} className="flex min-w-0 items-center gap-1">
                  {index > 0 && <ChevronRight size={12} className="shrink-0" aria-hidden />}
                  <Link to={crumb.to} className="truncate rounded hover:text-text hover:underline">
                    {crumb.label}
                  </Link>
                </span>
              ))}
            </nav>
          )}
          <div className="flex min-w-0 items-center gap-3">
            <h1 className="truncate font-semibold text-title tracking-tight">{title}</h1>
            {beside}
          </div>
        </div>
        <div className="flex items-center gap-2 max-sm:ml-auto">
          {actions}
          {openPalette && (
            <Button look="quiet" aria-keyshortcuts="Meta+K Control+K" onClick={openPalette}>
              <Search size={15} aria-hidden />
              <span className="sr-only">Search</span>
              <kbd className="max-sm:hidden">{MOD === "⌘" ? "⌘K" : "Ctrl K"}</kbd>
            </Button>
          )}
        </div>
      </header>
      <main
        className={classes(
          "min-h-0 flex-1",
          fill ? "flex flex-col [--table-start:1.5rem]" : "overflow-y-auto px-6 py-5 max-sm:px-4",
        )}
      >
        {children}
      </main>
    </div>
  );
}
