import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Deployment, Secret } from "../../../../src/control-plane/contract/records.ts";
import { api } from "../../api/request.ts";
import { Field, Input } from "../../ui/field.tsx";
import { bringFolder, revisionConfigOf } from "./bring-source.ts";
import { deploymentsKey } from "./queries.ts";
import { SecretRows } from "./secret-rows.tsx";
import { type Reporting, SourceDialog } from "./source-dialog.tsx";
import { NO_SOURCE } from "./source-fields.tsx";

const SOURCES = { folder: "internal_source", git: "github", image: "external_docker" } as const;

/** Makes a deployment of a folder, a repository or an image, and leads to it. */
export function CreateDeployment({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [draft, setDraft] = useState(NO_SOURCE);
  const [secrets, setSecrets] = useState<readonly Secret[]>([]);
  // It is there already when its upload failed; the next attempt goes on with it.
  const [made, setMade] = useState<Deployment>();

  const create = async (): Promise<Deployment> => {
    const deployment = await api.post<Deployment>("/v2/deployments", {
      name,
      source: SOURCES[draft.kind],
      source_config: draft.kind === "git" ? { repo_url: draft.repo_url.trim() } : {},
      source_revision_config: draft.kind === "folder" ? {} : revisionConfigOf(draft),
      secrets,
    });
    setMade(deployment);
    return deployment;
  };
  const submit = async (reporting: Reporting) => {
    const { id } = made ?? (await create());
    if (draft.kind === "folder") await bringFolder(id, draft, reporting);
    await client.invalidateQueries({ queryKey: deploymentsKey });
    await navigate({ to: `/deployments/${id}`, search: { tab: "logs" } as object });
  };
  return (
    <SourceDialog
      title="New deployment"
      action="Deploy"
      draft={draft}
      onChange={setDraft}
      kinds={made ? [draft.kind] : undefined}
      isNew
      onSubmit={submit}
      onClose={onClose}
      before={
        <Field label="Name" hint="Its address is made of it.">
          {(props) => (
            <Input
              {...props}
              required
              autoFocus
              maxLength={255}
              disabled={made !== undefined}
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
        <p className="text-table text-text-3">Environment variables of the deployment, kept encrypted.</p>
        <SecretRows secrets={secrets} onChange={setSecrets} />
      </fieldset>
    </SourceDialog>
  );
}
