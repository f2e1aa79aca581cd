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
    // The server keeps the previous value of an omitted field. An emptied field selects the default.
    const explicit = {
      ...draft,
      repo_ref: draft.repo_ref.trim() || (last.repo_ref ? "HEAD" : ""),
      config_path: draft.config_path.trim() || (last.langgraph_config_path ? "langgraph.json" : ""),
    };
    if (draft.kind === "folder") await deployFolder(deployment.id, explicit, options);
    else await newRevision(deployment.id, revisionConfigOf(explicit));
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
