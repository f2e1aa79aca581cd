import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Button } from "../../ui/button.tsx";
import { count } from "../../ui/format.ts";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { SampleButton } from "../experiments/sample/sample-button.tsx";
import { datasetsQuery } from "./queries.ts";

/** Latest datasets, with a button that loads a sample dataset. */
export function Evaluations() {
  const { data: datasets, error, refetch } = useQuery(datasetsQuery);
  return (
    <section aria-label="Experiments" className="grid grid-cols-1 gap-3">
      <h2 className="font-semibold text-body">Experiments</h2>
      <p className="text-text-2">
        Upload evaluation results to see which scores improved or dropped, and whether the differences are statistically
        significant.
      </p>
      {/* Placed above the list, so that the buttons do not move when the list loads. */}
      <div className="flex flex-wrap items-start gap-2">
        <SampleButton look={datasets?.length === 0 ? "primary" : "plain"} />
        <Button asChild>
          <Link to="/experiments">All datasets</Link>
        </Button>
      </div>
      <p className="text-table text-text-3">
        The sample dataset has 200 generated questions and three experiments. After loading, the comparison of the
        experiments opens.
      </p>
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : !datasets ? (
        <SkeletonRows label="Loading datasets" rows={2} />
      ) : (
        datasets.length > 0 && (
          <ul className="divide-y divide-line rounded-lg border border-line">
            {datasets.map(({ id, name, session_count, last_session_start_time }) => (
              <li key={id} className="flex items-center gap-3 px-3 py-1.5 text-table">
                <Link
                  to="/experiments/datasets/$id"
                  params={{ id }}
                  className="min-w-0 flex-1 truncate font-medium hover:underline"
                >
                  {name}
                </Link>
                <span className="text-text-2">
                  {count(session_count)} experiment{session_count === 1 ? "" : "s"}
                </span>
                <span className="w-24 text-right text-text-3">
                  <RelativeTime time={last_session_start_time} />
                </span>
              </li>
            ))}
          </ul>
        )
      )}
    </section>
  );
}
