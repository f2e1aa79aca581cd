import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { toast } from "../../ui/overlay/toast.tsx";
import { deployFolder, revisionConfigOf } from "./deploy-folder.ts";
import { deploymentsKey, newRevision } from "./queries.ts";
import { SourceDialog, type SubmitOptions } from "./source-dialog.tsx";
import { KIND_OF, NO_SOURCE } from "./source-fields.tsx";

/** Creates a revision. The form starts with the latest revision's source. */
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
  const submit = async (options: SubmitOptions) => {
    if (draft.kind === "folder") await deployFolder(deployment.id, draft, options);
    else await newRevision(deployment.id, revisionConfigOf(draft));
    await client.invalidateQueries({ queryKey: deploymentsKey });
    toast("Deploying the new revision. Until it is ready, requests are sent to the live revision, if there is one.");
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
