import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { toast } from "../../ui/toast.tsx";
import { bringFolder, revisionConfigOf } from "./bring-source.ts";
import { deploymentsKey, newRevision } from "./queries.ts";
import { type Reporting, SourceDialog } from "./source-dialog.tsx";
import { NO_SOURCE, type SourceKind } from "./source-fields.tsx";

const KIND_OF: Record<Deployment["source"], SourceKind> = {
  internal_source: "folder",
  github: "git",
  internal_docker: "image",
  external_docker: "image",
};

/** Makes another revision, beginning with what the latest was made of. */
export function NewRevision({ deployment, onClose }: { deployment: Deployment; onClose(): void }) {
  const client = useQueryClient();
  const { source, source_revision_config: last } = deployment;
  const [draft, setDraft] = useState({
    ...NO_SOURCE,
    kind: KIND_OF[source],
    config_path: last.langgraph_config_path ?? "",
    repo_ref: last.repo_ref ?? "",
    image_uri: last.image_uri ?? "",
  });
  const submit = async (reporting: Reporting) => {
    if (draft.kind === "folder") await bringFolder(deployment.id, draft, reporting);
    else await newRevision(deployment.id, revisionConfigOf(draft));
    await client.invalidateQueries({ queryKey: deploymentsKey });
    toast("The revision is under way. What serves goes on until it is ready.");
    onClose();
  };
  return (
    <SourceDialog
      title="New revision"
      action="Deploy"
      draft={draft}
      onChange={setDraft}
      kinds={[draft.kind]}
      onSubmit={submit}
      onClose={onClose}
    />
  );
}
