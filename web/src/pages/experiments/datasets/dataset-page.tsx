import { useQuery } from "@tanstack/react-query";
import { Play, Upload } from "lucide-react";
import { useState } from "react";
import { Page } from "../../../frame/header.tsx";
import { Button } from "../../../ui/button.tsx";
import { Id } from "../../../ui/code-block.tsx";
import { count } from "../../../ui/format.ts";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Tabs } from "../../../ui/tabs.tsx";
import { datasetQuery } from "../queries.ts";
import { datasetRoute } from "../routes.ts";
import { useUploads } from "../upload/upload-dialog.tsx";
import { DatasetMenu } from "./dataset-menu.tsx";
import { ExamplesTab } from "./examples-tab.tsx";
import { ExperimentsTab } from "./experiments-tab.tsx";
import { RunExperiment } from "./run-experiment.tsx";
import { RunningExperiments } from "./running-experiments.tsx";

const CRUMBS = [{ label: "Experiments", to: "/experiments" }];

export function DatasetPage() {
  const { id } = datasetRoute.useParams();
  const { tab = "experiments" } = datasetRoute.useSearch();
  const navigate = datasetRoute.useNavigate();
  const { data: dataset, error, refetch } = useQuery(datasetQuery(id));
  const uploads = useUploads(dataset?.name);
  const [isRunning, setRunning] = useState(false);
  if (error && !dataset)
    return (
      <Page title="Dataset" crumbs={CRUMBS}>
        <ErrorState error={error} retry={() => void refetch()} />
      </Page>
    );
  return (
    <Page
      title={dataset?.name ?? "Dataset"}
      crumbs={CRUMBS}
      beside={<Id id={id} />}
      fill
      actions={
        dataset && (
          <>
            <Button look="primary" onClick={() => setRunning(true)}>
              <Play size={15} aria-hidden /> Run experiment
            </Button>
            <Button onClick={uploads.open}>
              <Upload size={15} aria-hidden /> Upload
            </Button>
            <DatasetMenu dataset={dataset} />
          </>
        )
      }
    >
      {dataset?.description && (
        <p className="truncate px-6 pt-3 text-table text-text-2 max-sm:px-4" title={dataset.description}>
          {dataset.description}
        </p>
      )}
      {dataset && <RunningExperiments dataset={dataset} />}
      {dataset ? (
        <Tabs
          fill
          label="Dataset"
          value={tab}
          onChange={(chosen) =>
            void navigate({ params: { id }, search: { tab: chosen === "examples" ? chosen : undefined } })
          }
          tabs={[
            {
              value: "experiments",
              label: `Experiments ${count(dataset.session_count)}`,
              content: <ExperimentsTab dataset={dataset} />,
            },
            {
              value: "examples",
              label: `Examples ${count(dataset.example_count)}`,
              content: <ExamplesTab dataset={dataset} />,
            },
          ]}
        />
      ) : (
        <SkeletonRows label="Loading dataset" rows={10} />
      )}
      {uploads.dialog}
      {dataset && isRunning && <RunExperiment dataset={dataset} onClose={() => setRunning(false)} />}
    </Page>
  );
}
