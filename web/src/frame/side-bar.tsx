import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { mayUse } from "../../../src/platform/contract/caller.ts";
import { APP_PATH } from "../api/request.ts";
import { sessionQuery } from "../api/session.ts";
import type { Page } from "../page.ts";
import { pages } from "../pages.ts";
import { classes } from "../ui/layout.tsx";

/** Links to the pages that the user can access. The bar is at the left, or at the bottom on narrow screens. */
export function SideBar() {
  const { data: session } = useQuery(sessionQuery);
  const shown = pages.filter(({ nav }) => !nav.scope || !session || mayUse(session, nav.scope));
  return (
    <nav
      aria-label="Pages"
      className="flex w-44 shrink-0 flex-col gap-0.5 border-line border-r bg-sunken p-2 max-sm:order-last max-sm:w-full max-sm:flex-row max-sm:justify-around max-sm:gap-0 max-sm:overflow-x-auto max-sm:border-t max-sm:border-r-0 max-sm:p-1 max-sm:pb-[max(4px,env(safe-area-inset-bottom))]"
    >
      <Link
        to="/"
        activeOptions={{ exact: true }}
        className="mb-2 flex h-10 items-center gap-2 rounded-md px-2 max-sm:hidden"
      >
        <img src={`${APP_PATH}icon.svg`} alt="" width={20} height={20} />
        <span className="font-semibold tracking-tight">Threadmill</span>
      </Link>
      {shown.map(({ nav: { label, to, icon: Icon, count } }) => (
        <Link
          key={to}
          to={to}
          title={label}
          className={classes(
            "flex h-8 items-center gap-2.5 rounded-md px-2 font-medium text-table",
            "relative max-sm:h-12 max-sm:min-w-7 max-sm:shrink-0 max-sm:flex-col max-sm:justify-center max-sm:gap-0.5 max-sm:px-1",
          )}
          activeProps={{ className: "bg-selected text-accent-text" }}
          inactiveProps={{ className: "text-text-2 hover:bg-hover hover:text-text" }}
        >
          {({ isActive }) => (
            <>
              <Icon className="size-4 max-sm:size-5" aria-hidden />
              {/* Eleven labels do not fit on a phone, so only the current page's label is shown there. */}
              <span className={classes(!isActive && "max-sm:sr-only")}>{label}</span>
              {count && <Count {...count} />}
            </>
          )}
        </Link>
      ))}
    </nav>
  );
}

function Count({ useCount, title }: NonNullable<Page["nav"]["count"]>) {
  const number = useCount();
  if (!number) return null;
  return (
    <span
      title={title}
      className="ml-auto rounded-full bg-interrupted px-1.5 text-bg text-note max-sm:absolute max-sm:top-0 max-sm:right-0 max-sm:px-1"
    >
      {number > 99 ? "99+" : number}
    </span>
  );
}
