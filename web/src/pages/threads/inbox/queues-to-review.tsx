import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMay } from "../../../api/session.ts";
import { count } from "../../../ui/format.ts";
import { queuesQuery } from "../../queues/queries.ts";

/** Links to the annotation queues with items that the user still has to review. Renders nothing if there are none. */
export function QueuesToReview() {
  const may = useMay("experiments") === true;
  const { data } = useInfiniteQuery({ ...queuesQuery(undefined, { by: "name", descending: false }), enabled: may });
  const queues = data?.pages.flat().filter(({ items }) => items.needs_my_review > 0) ?? [];
  if (queues.length === 0) return null;
  return (
    <nav
      aria-label="Annotation queues"
      className="flex flex-wrap gap-x-4 gap-y-1 border-line border-b px-6 py-2 text-table max-sm:px-4"
    >
      <span className="text-text-2">To review</span>
      {queues.map(({ id, name, items }) => (
        <Link
          key={id}
          to="/queues/$id"
          params={{ id }}
          className="max-w-60 truncate rounded text-accent-text hover:underline"
        >
          {name} ({count(items.needs_my_review)})
        </Link>
      ))}
    </nav>
  );
}
