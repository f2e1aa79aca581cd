import type { UploadUrl } from "../../../../src/control-plane/contract/deployments.ts";
import { API_PATH } from "../../api/base.ts";
import { api, RequestError } from "../../api/request.ts";

/**
 * Brings a tarball to the service and answers its `object_path`.
 *
 * @param onProgress told how many of its bytes have left
 */
export async function upload(
  deployment_id: string,
  tarball: Blob,
  { onProgress, signal }: { onProgress(bytes: number): void; signal: AbortSignal },
): Promise<string> {
  const { upload_url, object_path } = await api.post<UploadUrl>(`/v2/deployments/${deployment_id}/upload-url`);
  // The service may know itself by another name than this page, which may ask nobody but where it comes from.
  const [, name] = /(\/v2\/uploads\/.+)$/.exec(upload_url) ?? [];
  await put(`${API_PATH}${name}`, tarball, onProgress, signal);
  return object_path;
}

/** By XMLHttpRequest, as fetch does not tell how much has left. */
function put(url: string, body: Blob, onProgress: (bytes: number) => void, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    request.setRequestHeader("content-type", "application/gzip");
    request.upload.onprogress = ({ loaded }) => onProgress(loaded);
    request.onerror = () => reject(new RequestError(0, "The upload broke off. Is the server running?"));
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
    return `The server answered ${status} to the upload.`;
  }
}
