import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { ExperimentRun } from "../../../../../src/experiments/contract/runs.ts";
import { IS_PUBLIC_PAGE } from "../../../api/request.ts";
import { Copy } from "../../../ui/code-block.tsx";
import { duration } from "../../../ui/format.ts";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { DetailSection } from "../../../ui/layout.tsx";
import { Badge } from "../../../ui/status.tsx";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Tags, related records, metadata, the runtime and the events of a run. */
export function RunDetails({ run }: { run: ExperimentRun }) {
  const { metadata = {}, runtime, invocation_params, ...extra } = (run.extra ?? {}) as Record<string, object>;
  const others = { ...extra, ...(run.serialized && { serialized: run.serialized }) };
  return (
    <div className="grid grid-cols-1 gap-5">
      <Related run={run} metadata={metadata as Record<string, unknown>} />
      {(run.tags?.length ?? 0) > 0 && (
        <DetailSection title="Tags">
          <span className="flex flex-wrap gap-1">
            {run.tags?.map((tag) => (
              <Badge key={tag}>{tag}</Badge>
            ))}
          </span>
        </DetailSection>
      )}
      <Json title="Metadata" value={metadata} />
      <Json title="Invocation parameters" value={invocation_params} />
      <UsageDetails run={run} />
      <Events run={run} />
      <Json title="Runtime" value={runtime} />
      <Json title="Other fields" value={others} open={0} />
    </div>
  );
}

function Json({ title, value, open = 1 }: { title: string; value: object | undefined; open?: number }) {
  if (!value || Object.keys(value).length === 0) return null;
  return (
    <DetailSection title={title}>
      <JsonTree value={value} open={open} />
    </DetailSection>
  );
}

/** Links to the records that the run belongs to. For runs of the agent server, the metadata contains the run, thread and assistant IDs. */
function Related({ run, metadata }: { run: ExperimentRun; metadata: Record<string, unknown> }) {
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-center gap-x-6 gap-y-1 text-table">
      <Row name="Run">
        <FullId id={run.id} />
      </Row>
      <Row name="Trace">
        <FullId id={run.trace_id} />
      </Row>
      {!IS_PUBLIC_PAGE && <Links run={run} metadata={metadata} />}
    </dl>
  );
}

function Links({ run, metadata }: { run: ExperimentRun; metadata: Record<string, unknown> }) {
  const isAgentRun = metadata.run_id === run.id && typeof metadata.assistant_id === "string";
  const { deployment_id } = metadata;
  const isOfDeployment = typeof deployment_id === "string" && UUID.test(deployment_id);
  const evaluated = metadata.target_run_id ?? metadata.reference_run_id;
  return (
    <>
      {isAgentRun && isOfDeployment && (
        <Row name="Agent">
          <Link to="/deployments/$id" params={{ id: deployment_id }} className={LINK}>
            Open deployment
          </Link>
        </Row>
      )}
      {isAgentRun && !isOfDeployment && (
        <Row name="Agent">
          <Link to="/runs" search={{ run: run.id }} className={LINK}>
            Open run
          </Link>
        </Row>
      )}
      {run.reference_example_id !== null && run.reference_dataset_id !== null && (
        <Row name="Example">
          <Link
            to="/experiments/datasets/$id"
            params={{ id: run.reference_dataset_id }}
            search={{ example: run.reference_example_id }}
            className={LINK}
          >
            Open example
          </Link>
          <Link
            to="/experiments/sessions/$id"
            params={{ id: run.session_id }}
            search={{ run: run.id }}
            className={LINK}
          >
            Open experiment
          </Link>
        </Row>
      )}
      {typeof evaluated === "string" && UUID.test(evaluated) && (
        <Row name="Evaluates">
          <Link to="/runs/$id" params={{ id: evaluated }} className={LINK}>
            Open evaluated run
          </Link>
        </Row>
      )}
    </>
  );
}

const LINK = "mr-4 rounded text-accent-text hover:underline";

const Row = ({ name, children }: { name: string; children: ReactNode }) => (
  <>
    <dt className="text-text-3">{name}</dt>
    <dd className="flex min-h-6 min-w-0 items-center">{children}</dd>
  </>
);

const FullId = ({ id }: { id: string }) => (
  <>
    <code className="min-w-0 truncate">{id}</code>
    <Copy text={id} label={`Copy ID ${id}`} />
  </>
);

function UsageDetails({ run }: { run: ExperimentRun }) {
  const { prompt_token_details, completion_token_details, prompt_cost_details, completion_cost_details } = run;
  const all = { prompt_token_details, completion_token_details, prompt_cost_details, completion_cost_details };
  const known = Object.entries(all).filter(([, value]) => value && Object.keys(value).length > 0);
  return <Json title="Usage" value={Object.fromEntries(known)} open={2} />;
}

function Events({ run }: { run: ExperimentRun }) {
  const events = run.events ?? [];
  if (events.length === 0) return null;
  return (
    <DetailSection title="Events">
      <ol className="grid gap-0.5 text-table">
        {events.map((event, index) => {
          const { name, time, ...fields } = event as Record<string, unknown>;
          const at = typeof time === "string" || typeof time === "number" ? new Date(time).getTime() : Number.NaN;
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: events have no ids, and a list is replaced as a whole
            <li key={index} className="grid grid-cols-[5rem_minmax(0,1fr)] gap-3">
              <span className="text-right font-mono text-text-3">
                {Number.isNaN(at) ? "" : `+${duration(Math.max(0, at - Date.parse(run.start_time)))}`}
              </span>
              <span className="min-w-0">
                {String(name ?? "event")}
                {Object.keys(fields).length > 0 && <JsonTree value={fields} open={0} />}
              </span>
            </li>
          );
        })}
      </ol>
    </DetailSection>
  );
}
