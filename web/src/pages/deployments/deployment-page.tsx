import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { useCredentials } from "../../api/credentials.ts";
import { API_URL, APP_PATH } from "../../api/request.ts";
import { liveSlugOf } from "../../api/target.ts";
import { Page } from "../../frame/header.tsx";
import { Button } from "../../ui/button.tsx";
import { CodeBlock, Copy } from "../../ui/code-block.tsx";
import { ErrorState, Skeleton, SkeletonRows } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { curlOf } from "../start/curl.ts";
import { DeleteDeployment } from "./delete-deployment.tsx";
import { DeploymentStatus } from "./deployment-status.tsx";
import { Logs } from "./logs.tsx";
import { NewRevision } from "./new-revision.tsx";
import { type DeploymentSearch, deploymentRoute } from "./page.ts";
import { deploymentQuery, servedQuery } from "./queries.ts";
import { Revisions } from "./revisions.tsx";
import { Secrets } from "./secrets.tsx";

const CRUMBS = [{ label: "Deployments", to: "/deployments" }];

export function DeploymentPage() {
  const { id } = deploymentRoute.useParams();
  const { data: deployment, error, refetch } = useQuery(deploymentQuery(id));
  const [open, setOpen] = useState<"revision" | "delete">();
  const close = () => setOpen(undefined);
  if (!deployment)
    return (
      <Page title="Deployment" crumbs={CRUMBS}>
        {error ? (
          <ErrorState error={error} retry={() => void refetch()} />
        ) : (
          <>
            <Skeleton className="mb-4 w-1/2" />
            <SkeletonRows label="Loading deployment" height={56} />
          </>
        )}
      </Page>
    );
  return (
    <Page
      title={deployment.name}
      crumbs={CRUMBS}
      beside={<DeploymentStatus {...deployment} />}
      actions={
        <>
          <Button look="primary" onClick={() => setOpen("revision")}>
            <Plus size={15} aria-hidden /> New revision
          </Button>
          <Button look="danger" aria-label="Delete deployment" onClick={() => setOpen("delete")}>
            <Trash2 size={15} aria-hidden /> <span className="max-sm:hidden">Delete</span>
          </Button>
        </>
      }
    >
      <Address deployment={deployment} />
      {deployment.source_config.custom_url && deployment.active_revision_id && (
        <RunCommand address={deployment.source_config.custom_url} revision_id={deployment.active_revision_id} />
      )}
      <DeploymentTabs deployment={deployment} />
      {open === "revision" && <NewRevision deployment={deployment} onClose={close} />}
      {open === "delete" && <DeleteDeployment deployment={deployment} onClose={close} />}
    </Page>
  );
}

function Address({ deployment }: { deployment: Deployment }) {
  const { source_config, active_revision_id } = deployment;
  const { custom_url, repo_url } = source_config;
  const slug = liveSlugOf(deployment);
  return (
    <div className="mb-3 flex flex-wrap items-center gap-x-6 gap-y-1 text-table">
      <span className="flex min-w-0 items-center gap-1">
        <span className="text-text-3">URL</span>
        <code className="min-w-0 break-all">{custom_url}</code>
        {custom_url && <Copy text={custom_url} label="Copy URL" />}
      </span>
      {/* The new page takes its target from the address. */}
      {slug && (
        <a href={`${APP_PATH}threads/new?target=${slug}`} className="text-accent-text hover:underline">
          New thread
        </a>
      )}
      {custom_url && active_revision_id && (
        <a href={`${custom_url}/docs`} className="text-accent-text hover:underline">
          API documentation
        </a>
      )}
      {repo_url && (
        <span className="min-w-0">
          <span className="text-text-3">Repository</span> <code className="break-all">{repo_url}</code>
        </span>
      )}
    </div>
  );
}

/** The command that runs the deployed agent once. Not shown for a deployment at another address than this service. */
function RunCommand({ address, revision_id }: { address: string; revision_id: string }) {
  const { data } = useQuery({
    ...servedQuery(address, revision_id),
    enabled: address.startsWith(`${API_URL}/`),
  });
  const { key } = useCredentials();
  if (!data) return null;
  const { assistant, schema } = data;
  return (
    <details className="mb-4 text-table">
      <summary className="w-fit cursor-pointer rounded text-text-2">Run {assistant.name} from a terminal</summary>
      <div className="mt-2">
        <CodeBlock code={curlOf({ address, assistant, schema, needsKey: key !== undefined })} label="Copy command" />
      </div>
    </details>
  );
}

function DeploymentTabs({ deployment }: { deployment: Deployment }) {
  const { tab = "revisions" } = deploymentRoute.useSearch();
  const navigate = deploymentRoute.useNavigate();
  return (
    <Tabs
      label="Deployment"
      value={tab}
      onChange={(chosen) =>
        void navigate({
          search: (before: DeploymentSearch) => ({ ...before, tab: chosen === "revisions" ? undefined : chosen }),
        })
      }
      tabs={[
        { value: "revisions", label: "Revisions", content: <Revisions deployment={deployment} /> },
        { value: "logs", label: "Logs", content: <Logs deployment={deployment} /> },
        { value: "secrets", label: "Secrets", content: <Secrets deployment={deployment} /> },
      ]}
    />
  );
}
