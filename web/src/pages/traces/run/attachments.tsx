import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useEffect, useState } from "react";
import type { ExperimentRun } from "../../../../../src/experiments/contract/runs.ts";
import { API_PATH, send } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { DetailSection } from "../../../ui/layout.tsx";

/** Image types that are displayed. Other types, such as SVG, may contain scripts. */
const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const PREFIX = "attachment.";

interface Attachment {
  name: string;
  mime_type: string;
  /** Path relative to the API root, because the absolute URL from the server may have a different host than the page. */
  path: string;
}

function attachmentsOf({ s3_urls }: ExperimentRun): Attachment[] {
  return Object.entries((s3_urls ?? {}) as Record<string, { presigned_url: string; mime_type: string }>).flatMap(
    ([key, { presigned_url, mime_type }]) => {
      const { pathname } = new URL(presigned_url, location.href);
      const path = pathname.slice(pathname.indexOf("/api/v1/"));
      return key.startsWith(PREFIX) ? [{ name: key.slice(PREFIX.length), mime_type, path }] : [];
    },
  );
}

export function Attachments({ run }: { run: ExperimentRun }) {
  const attachments = attachmentsOf(run);
  if (attachments.length === 0) return null;
  return (
    <DetailSection title="Attachments">
      <ul className="grid gap-3">
        {attachments.map((attachment) => (
          <li key={attachment.name} className="grid gap-1.5">
            <span className="flex min-w-0 items-center gap-2 text-table">
              <span className="truncate font-medium">{attachment.name}</span>
              <span className="text-text-3">{attachment.mime_type}</span>
              <Button asChild small look="quiet" className="ml-auto">
                <a href={`${API_PATH}${attachment.path}`} download={attachment.name}>
                  <Download size={13} aria-hidden /> Download
                </a>
              </Button>
            </span>
            {IMAGES.has(attachment.mime_type) && <Picture attachment={attachment} />}
          </li>
        ))}
      </ul>
    </DetailSection>
  );
}

/** Shows an image from a blob of the declared type, because the server sends attachments as downloads. */
function Picture({ attachment: { name, mime_type, path } }: { attachment: Attachment }) {
  const { data } = useQuery({
    queryKey: ["attachment", path],
    queryFn: async ({ signal }) =>
      new Blob([await (await send("GET", path, { signal })).arrayBuffer()], { type: mime_type }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 10_000,
  });
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (!data) return;
    const created = URL.createObjectURL(data);
    setUrl(created);
    return () => URL.revokeObjectURL(created);
  }, [data]);
  return url ? (
    <img src={url} alt={name} className="max-h-96 max-w-full justify-self-start rounded-lg border border-line" />
  ) : null;
}
