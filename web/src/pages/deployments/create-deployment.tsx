import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Deployment, Secret } from "../../../../src/control-plane/contract/records.ts";
import { api } from "../../api/request.ts";
import { Field, Input } from "../../ui/form/field.tsx";
import { deployFolder, revisionConfigOf } from "./deploy-folder.ts";
import { deploymentsKey } from "./queries.ts";
import { SecretRows } from "./secret-rows.tsx";
import { SourceDialog, type SubmitOptions } from "./source-dialog.tsx";
import { NO_SOURCE } from "./source-fields.tsx";

const SOURCES = { folder: "internal_source", git: "github", image: "external_docker" } as const;

/** Creates a deployment from a folder, a repository or an image, then opens the deployment's page. */
export function CreateDeployment({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [draft, setDraft] = useState(NO_SOURCE);
  const [secrets, setSecrets] = useState<readonly Secret[]>([]);
  // The created deployment. After a failed upload, a retry reuses this deployment.
  const [created, setCreated] = useState<Deployment>();

  const create = async (): Promise<Deployment> => {
    const deployment = await api.post<Deployment>("/v2/deployments", {
      name,
      source: SOURCES[draft.kind],
      source_config: draft.kind === "git" ? { repo_url: draft.repo_url.trim() } : {},
      source_revision_config: draft.kind === "folder" ? {} : revisionConfigOf(draft),
      secrets,
    });
    setCreated(deployment);
    return deployment;
  };
  const submit = async (options: SubmitOptions) => {
    const { id } = created ?? (await create());
    if (draft.kind === "folder") await deployFolder(id, draft, options);
    await client.invalidateQueries({ queryKey: deploymentsKey });
    await navigate({ to: `/deployments/${id}`, search: { tab: "logs" } as object });
  };
  return (
    <SourceDialog
      title="New deployment"
      action="Deploy"
      draft={draft}
      onChange={setDraft}
      kinds={created ? [draft.kind] : undefined}
      isNew
      onSubmit={submit}
      onClose={onClose}
      before={
        <Field label="Name" hint="Part of the deployment's URL.">
          {(props) => (
            <Input
              {...props}
              required
              autoFocus
              maxLength={255}
              disabled={created !== undefined}
              placeholder="support-desk"
              value={name}
              onChange={({ target }) => setName(target.value)}
            />
          )}
        </Field>
      }
    >
      <fieldset className="grid gap-1.5">
        <legend className="mb-1 font-medium text-table">Secrets</legend>
        <p className="text-table text-text-3">Passed to the deployment as environment variables. Stored encrypted.</p>
        <SecretRows secrets={secrets} onChange={setSecrets} />
      </fieldset>
    </SourceDialog>
  );
}
