import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { api } from "../../api/request.ts";
import { type SourceDraft, sizeOf } from "./source-fields.tsx";
import { pack } from "./source-folder.ts";
import { uploadSource } from "./upload.ts";

/** Progress of a folder upload, in bytes. */
export interface UploadStage {
  label: string;
  done: number;
  total: number;
}

/** Builds a revision's `source_revision_config`. For a folder, the tarball's path is added after the upload. */
export const revisionConfigOf = ({ kind, config_path, repo_ref, image_uri }: SourceDraft) =>
  kind === "image"
    ? { image_uri: image_uri.trim() }
    : {
        ...(config_path.trim() && { langgraph_config_path: config_path.trim() }),
        ...(kind === "git" && repo_ref.trim() && { repo_ref: repo_ref.trim() }),
      };

/** Packs and uploads a folder, then creates a revision from the tarball. */
export async function deployFolder(
  deployment_id: string,
  draft: SourceDraft,
  { onStage, signal }: { onStage(stage: UploadStage): void; signal: AbortSignal },
): Promise<Deployment> {
  const total = sizeOf(draft.files);
  onStage({ label: "Packing", done: 0, total });
  const tarball = await pack(draft.files, { onProgress: (done) => onStage({ label: "Packing", done, total }), signal });
  const onProgress = (done: number) => onStage({ label: "Uploading", done, total: tarball.size });
  onProgress(0);
  const source_tarball_path = await uploadSource(deployment_id, tarball, { onProgress, signal });
  return api.patch<Deployment>(`/v2/deployments/${deployment_id}`, {
    revision_source: "internal_source",
    source_revision_config: { ...revisionConfigOf(draft), source_tarball_path },
  });
}
