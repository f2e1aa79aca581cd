import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, Clock, Table, Terminal, X } from "lucide-react";
import type { ReactNode } from "react";
import { RequestError, type ValidationIssue } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { CodeBlock } from "../../../ui/code-block.tsx";
import { bytes, count } from "../../../ui/format.ts";
import { ScrollRegion } from "../../../ui/layout.tsx";
import { Progress } from "../../../ui/progress.tsx";
import { isResultFile } from "./result-file.ts";
import { ResultFileForm } from "./result-file-form.tsx";
import { type FileUpload, removeUpload, uploadCommand } from "./uploads.ts";

export function UploadItem({ upload, onLeave }: { upload: FileUpload; onLeave(): void }) {
  const { file, body, state, sent_bytes, content, result, error } = upload;
  return (
    <li className="grid gap-1.5">
      {state === "sending" && (
        <Progress
          label={sent_bytes < body.size ? file.name : `${file.name}: saving`}
          done={Math.min(sent_bytes, body.size)}
          total={body.size}
          format={bytes}
          onCancel={() => removeUpload(upload)}
        />
      )}
      <div hidden={state === "sending"} className="flex items-center gap-2 text-table">
        {(state === "reading" || state === "mapping") && (
          <Table size={14} className="shrink-0 text-text-3" aria-hidden />
        )}
        {state === "waiting" && <Clock size={14} className="shrink-0 text-pending" aria-hidden />}
        {state === "done" && <CircleCheck size={14} className="shrink-0 text-success" aria-hidden />}
        {state === "unsupported" && <Terminal size={14} className="shrink-0 text-text-3" aria-hidden />}
        {state === "failed" && <CircleX size={14} className="shrink-0 text-error" aria-hidden />}
        <span className="min-w-0 flex-1 truncate">
          {file.name}
          <span className="text-text-3"> · {STATES[state] ?? bytes(file.size)}</span>
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
      {error && <UploadError error={error} upload={upload} />}
      {content && state !== "done" && (
        // Stays while the file is sent, so that the choices can be changed after an error.
        <div hidden={state !== "mapping" && state !== "failed"}>
          <ResultFileForm upload={upload} content={content} />
        </div>
      )}
      {state === "unsupported" && (
        <div className="grid gap-1.5 text-table text-text-2">
          <p>
            The file is too large for the browser. Replace NAME in this command with your dataset's name, then run it:
          </p>
          <CodeBlock code={uploadCommand(file.name)} label={`Copy command for ${file.name}`} />
        </div>
      )}
    </li>
  );
}

const STATES: Partial<Record<FileUpload["state"], string>> = { waiting: "Waiting", reading: "Reading" };

function UploadError({ error, upload }: { error: Error; upload: FileUpload }) {
  const { file, lines } = upload;
  const issues = error instanceof RequestError ? error.issues : [];
  if (issues.length === 0)
    return (
      <ErrorBox>
        {error.message} {adviceFor(error, file.name)}
      </ErrorBox>
    );
  return (
    <ErrorBox>
      Nothing from this file was stored. {count(issues.length)} validation {issues.length === 1 ? "error" : "errors"}:
      <ScrollRegion label={`Validation errors of ${file.name}`} className="mt-1 max-h-48 overflow-y-auto font-mono">
        <ul>
          {issues.map((issue) => (
            <IssueLine key={`${issue.loc?.join(".")} ${issue.msg}`} issue={issue} lines={lines} />
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
    return isResultFile(name)
      ? "Change the name of the experiment."
      : "Change experiment_name in the file, or rename the existing experiment.";
  if (error instanceof RequestError && !isResultFile(name) && !/\.json$/i.test(name))
    return "This page accepts JSON, JSONL and CSV files. Upload other formats with the command below.";
  return "";
}

/** One validation error: the row, the field, the problem and the rejected value. */
function IssueLine({ issue, lines }: { issue: ValidationIssue; lines: readonly number[] | undefined }) {
  // A nested position, which the message of a list contains: `Value error, must be a number or a boolean (at 0.score)`.
  const [, problem, at = ""] = /^(?:Value error, )?(.*?)(?: \(at ([\w.]+)\))?$/s.exec(issue.msg ?? "") ?? [];
  const nested = at.split(".").flatMap((part) => (part === "" ? [] : /^\d+$/.test(part) ? Number(part) : part));
  const value = nested.reduce<unknown>((within, part) => (within as Record<string, unknown>)?.[part], issue.input);
  return (
    <li className="break-words">
      <span className="text-text">{pathOf([...(issue.loc ?? []).slice(1), ...nested], lines)}</span> {problem}
      {inputText(value)}
    </li>
  );
}

/** Formats the path of a validation error, for example `results[3].start_time`, or `line 5: start_time` for a row of a table. */
function pathOf(path: readonly (string | number)[], lines: readonly number[] | undefined): string {
  const line = path[0] === "results" && typeof path[1] === "number" ? lines?.[path[1]] : undefined;
  const text = (line === undefined ? path : path.slice(2))
    .map((part, index) => (typeof part === "number" ? `[${part}]` : index > 0 ? `.${part}` : part))
    .join("");
  return line === undefined ? text || "upload" : `line ${line}: ${text}`;
}

/** Formats the rejected value. Returns an empty string for missing values, null, objects and long values. */
function inputText(input: unknown): string {
  if (input === undefined || input === null || typeof input === "object") return "";
  const text = JSON.stringify(input);
  return text.length > 60 ? "" : ` (got ${text})`;
}
