import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import { Button } from "../../../ui/button.tsx";
import { Progress } from "../../../ui/progress.tsx";
import { sessionsQuery } from "../queries.ts";
import {
  continueExperiment,
  dismissExperiment,
  type RunningExperiment,
  useRunningExperiments,
} from "./experiment-runs.ts";

/** The experiments that this page runs on a dataset. */
export function RunningExperiments({ dataset }: { dataset: Dataset }) {
  const running = useRunningExperiments().filter(({ order }) => order.dataset.id === dataset.id);
  return running.map((experiment) => <Row key={experiment.id} dataset={dataset} experiment={experiment} />);
}

function Row({
  dataset,
  experiment: { id, order, state, done, total, failed, error },
}: {
  dataset: Dataset;
  experiment: RunningExperiment;
}) {
  const client = useQueryClient();
  const { data: sessions = [] } = useQuery(sessionsQuery(dataset.id));
  const dismiss = () => dismissExperiment(id);
  if (state === "running")
    return (
      <section aria-label={order.name} className="border-line border-b px-6 py-2 max-sm:px-4">
        <Progress label={`Running ${order.name}`} done={done} total={total} onCancel={dismiss} />
      </section>
    );
  // Without a baseline of the dataset: the previous experiment. The list begins with the newest one.
  const previous = sessions[sessions.findIndex((session) => session.id === id) + 1];
  const baseline = dataset.baseline_experiment_id ?? previous?.id;
  return (
    <section
      aria-label={order.name}
      className="flex flex-wrap items-center gap-3 border-line border-b px-6 py-2 text-table max-sm:px-4"
    >
      {state === "done" ? (
        <>
          <span className="min-w-0 flex-1">
            {order.name} has ended.{" "}
            {failed.runs + failed.evaluations > 0 && (
              <span role="alert" className="text-error">
                {failuresOf(failed, total)}
              </span>
            )}
          </span>
          {baseline && baseline !== id && (
            <Link
              to="/experiments/datasets/$id/compare"
              params={{ id: dataset.id }}
              search={{ experiments: `${baseline},${id}` }}
              className="text-accent-text hover:underline"
            >
              Compare with the baseline
            </Link>
          )}
          <Link to="/experiments/sessions/$id" params={{ id }} className="text-accent-text hover:underline">
            Open
          </Link>
        </>
      ) : (
        <>
          <span role="alert" className="min-w-0 flex-1 text-error">
            {order.name} stopped after {done} of {total} examples: {error?.message}
          </span>
          <Button small onClick={() => void continueExperiment(id, client)}>
            Continue
          </Button>
        </>
      )}
      <Button small look="quiet" onClick={dismiss}>
        Close
      </Button>
    </section>
  );
}

/** Returns a sentence such as “2 of 20 runs and 3 evaluations failed.” */
function failuresOf({ runs, evaluations }: RunningExperiment["failed"], total: number): string {
  const parts = [];
  if (runs > 0) parts.push(`${runs} of ${total} runs`);
  if (evaluations > 0) parts.push(evaluations === 1 ? "1 evaluation" : `${evaluations} evaluations`);
  return `${parts.join(" and ")} failed.`;
}
