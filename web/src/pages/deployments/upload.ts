import type { UploadUrl } from "../../../../src/control-plane/contract/deployments.ts";
import { API_PATH, api, type UploadOptions, upload } from "../../api/request.ts";

/** Uploads a tarball. @returns the tarball's `object_path` */
export async function uploadSource(deployment_id: string, tarball: Blob, options: UploadOptions): Promise<string> {
  const { upload_url, object_path } = await api.post<UploadUrl>(`/v2/deployments/${deployment_id}/upload-url`);
  // Uses only the URL's path: the URL may contain another host name, and the content security policy allows only the page's own origin.
  const [, path] = /(\/v2\/uploads\/.+)$/.exec(upload_url) ?? [];
  await upload("PUT", `${API_PATH}${path}`, { "content-type": "application/gzip" }, tarball, options);
  return object_path;
}
