import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, Clock, Terminal, X } from "lucide-react";
import type { ReactNode } from "react";
import { RequestError, type ValidationIssue } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { CodeBlock } from "../../../ui/code-block.tsx";
import { bytes, count } from "../../../ui/format.ts";
import { ScrollRegion } from "../../../ui/layout.tsx";
import { Progress } from "../../../ui/progress.tsx";
import { type FileUpload, removeUpload, uploadCommand } from "./uploads.ts";

export function UploadItem({ upload, onLeave }: { upload: FileUpload; onLeave(): void }) {
  const { file, state, sent_bytes, result, error } = upload;
  if (state === "sending")
    return (
      <li>
        <Progress
          label={sent_bytes < file.size ? file.name : `${file.name}: saving`}
          done={Math.min(sent_bytes, file.size)}
          total={file.size}
          format={bytes}
          onCancel={() => removeUpload(upload)}
        />
      </li>
    );
  return (
    <li className="grid gap-1.5">
      <div className="flex items-center gap-2 text-table">
        {state === "waiting" && <Clock size={14} className="shrink-0 text-pending" aria-hidden />}
        {state === "done" && <CircleCheck size={14} className="shrink-0 text-success" aria-hidden />}
        {state === "unsupported" && <Terminal size={14} className="shrink-0 text-text-3" aria-hidden />}
        {state === "failed" && <CircleX size={14} className="shrink-0 text-error" aria-hidden />}
        <span className="min-w-0 flex-1 truncate">
          {file.name}
          <span className="text-text-3"> · {state === "waiting" ? "Waiting" : bytes(file.size)}</span>
        </span>
        {result && (
          <Button small asChild>
            <Link to="/experiments/sessions/$id" params={{ id: result.experiment.id }} onClick={onLeave}>
              Open
            </Link>
          </Button>
        )}
        <Button look="quiet" small square aria-label={`Remove ${file.name}`} onClick={() => removeUpload(upload)}>
          <X size={14} />
        </Button>
      </div>
      {error && <UploadError error={error} name={file.name} />}
      {state === "unsupported" && (
        <div className="grid gap-1.5 text-table text-text-2">
          <p>Not uploaded: this page accepts only JSON files. Run this command with your dataset's name:</p>
          <CodeBlock code={uploadCommand(file.name)} label={`Copy command for ${file.name}`} />
        </div>
      )}
    </li>
  );
}

function UploadError({ error, name }: { error: Error; name: string }) {
  const issues = error instanceof RequestError ? error.issues : [];
  if (issues.length === 0)
    return (
      <ErrorBox>
        {error.message} {adviceFor(error, name)}
      </ErrorBox>
    );
  return (
    <ErrorBox>
      Nothing from this file was stored. {count(issues.length)} validation {issues.length === 1 ? "error" : "errors"}:
      <ScrollRegion label={`Validation errors of ${name}`} className="mt-1 max-h-48 overflow-y-auto font-mono">
        <ul>
          {issues.map((issue) => (
            <li key={`${pathOf(issue)} ${issue.msg}`} className="break-words">
              <span className="text-text">{pathOf(issue)}</span> {issue.msg}
              {inputText(issue.input)}
            </li>
          ))}
        </ul>
      </ScrollRegion>
    </ErrorBox>
  );
}

const ErrorBox = ({ children }: { children: ReactNode }) => (
  <div role="alert" className="rounded-md bg-error-bg px-3 py-2 text-table text-text-2">
    {children}
  </div>
);

function adviceFor(error: Error, name: string): string {
  if (/^session already exists/i.test(error.message))
    return "Change experiment_name in the file, or rename the existing experiment.";
  if (!/\.json$/i.test(name)) return "This page accepts only JSON files. Upload other formats with the command above.";
  return "";
}

/** Formats the path of a validation error, for example `results[3].start_time`. */
const pathOf = ({ loc = [] }: ValidationIssue): string =>
  loc
    .slice(1)
    .map((part, index) => (typeof part === "number" ? `[${part}]` : index > 0 ? `.${part}` : part))
    .join("") || "upload";

/** Formats the rejected value. Returns an empty string for missing values, null, objects and long values. */
function inputText(input: unknown): string {
  if (input === undefined || input === null || typeof input === "object") return "";
  const text = JSON.stringify(input);
  return text.length > 60 ? "" : ` (got ${text})`;
}
