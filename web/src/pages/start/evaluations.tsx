import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Dataset } from "../../../../src/experiments/contract/datasets/datasets.ts";
import { count } from "../../ui/format.ts";
import { ChangeMark } from "../experiments/compare/change-mark.tsx";
import { deltaText, pText } from "../experiments/compare/difference-text.ts";
import { differencesQuery } from "../experiments/compare/queries.ts";
import { compareSearch } from "../experiments/compare/route.ts";
import { hasPairs, isSignificant, signOf } from "../experiments/compare/view.ts";
import { newestPair } from "../experiments/metrics.ts";
import { sessionsQuery } from "../experiments/queries.ts";
import { SampleButton } from "../experiments/sample/sample-button.tsx";
import { HomeList, ITEM_LINK, MORE_LINK } from "./home-list.tsx";
import { datasetsQuery } from "./queries.ts";

/** Latest datasets, each with the verdict about its newest experiment, and a button that loads a sample dataset. */
export function Evaluations() {
  const { data: datasets, error, refetch } = useQuery(datasetsQuery);
  return (
    <div className="grid content-start gap-2">
      <HomeList
        title="Latest comparisons"
        more={
          <Link to="/experiments" className={MORE_LINK}>
            All datasets
          </Link>
        }
        items={datasets}
        error={error}
        retry={refetch}
        empty="Upload evaluation results to see which scores improved or dropped, and whether the differences are statistically significant. The comparisons appear here."
        keyOf={({ id }) => id}
      >
        {(dataset) => (
          <div className="min-w-0 flex-1">
            <div className="flex items-center gap-3">
              <Link to="/experiments/datasets/$id" params={{ id: dataset.id }} className={ITEM_LINK}>
                {dataset.name}
              </Link>
              <span className="shrink-0 text-text-3">
                {count(dataset.session_count)} experiment{dataset.session_count === 1 ? "" : "s"}
              </span>
            </div>
            {dataset.session_count > 1 && <Verdict dataset={dataset} />}
          </div>
        )}
      </HomeList>
      <SampleButton look={datasets?.length === 0 ? "primary" : "plain"} />
    </div>
  );
}

/** The clearest significant difference of the newest experiment, worse before better. */
function Verdict({ dataset: { id, baseline_experiment_id } }: { dataset: Dataset }) {
  const { data: sessions } = useQuery(sessionsQuery(id));
  const pair = sessions && newestPair(sessions, baseline_experiment_id);
  const { data: differences } = useQuery({
    ...differencesQuery(id, pair ? [pair.from.id, pair.newest.id] : [], true),
    enabled: pair !== undefined,
  });
  if (!pair || !differences) return <span className="block h-[18px]" />;
  const signs = differences
    .filter((each) => each.mean_delta !== null && isSignificant(each))
    .map((each) => ({ each, sign: signOf(each.mean_delta ?? 0, each.is_lower_score_better) }))
    .sort((a, b) => a.sign - b.sign || (a.each.p_adjusted ?? 1) - (b.each.p_adjusted ?? 1));
  const [first] = signs;
  return (
    <Link
      to="/experiments/datasets/$id/compare"
      params={{ id }}
      search={compareSearch([pair.from.id, pair.newest.id], pair.from.id)}
      className="block truncate hover:underline"
    >
      <span className="mr-2 text-text-2">{pair.newest.name}</span>
      {first ? (
        <ChangeMark sign={first.sign} isTextual>
          {first.sign < 0 ? "worse" : "better"} on {first.each.key}: {deltaText(first.each, true, false)},{" "}
          {pText(first.each.p_adjusted ?? 1)}
        </ChangeMark>
      ) : (
        <span className="text-text-3">
          {hasPairs(differences) ? "no significant differences" : `no scored example in common with ${pair.from.name}`}
        </span>
      )}
    </Link>
  );
}
