import type { UploadUrl } from "../../../../src/control-plane/contract/deployments.ts";
import { API_PATH, api, RequestError } from "../../api/request.ts";

/**
 * Uploads a tarball and returns its `object_path`.
 *
 * @param onProgress called with the number of uploaded bytes
 */
export async function upload(
  deployment_id: string,
  tarball: Blob,
  { onProgress, signal }: { onProgress(bytes: number): void; signal: AbortSignal },
): Promise<string> {
  const { upload_url, object_path } = await api.post<UploadUrl>(`/v2/deployments/${deployment_id}/upload-url`);
  // Only the path is used: the host name in the URL may differ from that of the page, which may only connect to its own origin.
  const [, name] = /(\/v2\/uploads\/.+)$/.exec(upload_url) ?? [];
  await put(`${API_PATH}${name}`, tarball, onProgress, signal);
  return object_path;
}

/** Uses XMLHttpRequest because fetch does not report upload progress. */
function put(url: string, body: Blob, onProgress: (bytes: number) => void, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    request.setRequestHeader("content-type", "application/gzip");
    request.upload.onprogress = ({ loaded }) => onProgress(loaded);
    request.onerror = () =>
      reject(new RequestError(0, "Upload interrupted. Check that the server is running and try again."));
    request.onabort = () => reject(signal.reason);
    request.onload = () => {
      if (request.status === 200) resolve();
      else reject(new RequestError(request.status, detailOf(request)));
    };
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(body);
  });
}

function detailOf({ responseText, status }: XMLHttpRequest): string {
  try {
    return String(JSON.parse(responseText).detail);
  } catch {
    return `Upload failed with status ${status}.`;
  }
}
