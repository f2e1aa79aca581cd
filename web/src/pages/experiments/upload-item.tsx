import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, Clock, Terminal, X } from "lucide-react";
import type { ReactNode } from "react";
import { type Reason, RequestError } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { CodeBlock } from "../../ui/code-block.tsx";
import { bytes, count } from "../../ui/format.ts";
import { Progress } from "../../ui/progress.tsx";
import { Scroller } from "../../ui/scroller.tsx";
import { uploadCommand } from "./upload-command.ts";
import { type FileUpload, removeUpload } from "./uploads.ts";

/** A file in the list of uploads: how far it is, what it became, or why it was refused. */
export function UploadItem({ upload, onLeave }: { upload: FileUpload; onLeave(): void }) {
  const { file, state, sent_bytes, result, error } = upload;
  if (state === "sending")
    return (
      <li>
        <Progress
          label={sent_bytes < file.size ? file.name : `${file.name}: the server stores it`}
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
        {state === "no json" && <Terminal size={14} className="shrink-0 text-text-3" aria-hidden />}
        {state === "failed" && <CircleX size={14} className="shrink-0 text-error" aria-hidden />}
        <span className="min-w-0 flex-1 truncate">
          {file.name}
          <span className="text-text-3"> · {state === "waiting" ? "waits" : bytes(file.size)}</span>
        </span>
        {result && (
          <Button small asChild>
            <Link to="/experiments/sessions/$id" params={{ id: result.experiment.id }} onClick={onLeave}>
              Open it
            </Link>
          </Button>
        )}
        <Button
          look="quiet"
          small
          square
          aria-label={`Take ${file.name} from the list`}
          onClick={() => removeUpload(upload)}
        >
          <X size={14} />
        </Button>
      </div>
      {error && <WhyRefused error={error} name={file.name} />}
      {state === "no json" && (
        <div className="grid gap-1.5 text-table text-text-2">
          <p>This page takes JSON alone, so it was not sent. With the name of its dataset, this uploads it:</p>
          <CodeBlock code={uploadCommand(file.name)} label={`Copy the command for ${file.name}`} />
        </div>
      )}
    </li>
  );
}

function WhyRefused({ error, name }: { error: Error; name: string }) {
  const reasons = error instanceof RequestError ? error.reasons : [];
  if (reasons.length === 0)
    return (
      <Refused>
        {error.message} {adviceFor(error, name)}
      </Refused>
    );
  return (
    <Refused>
      Nothing was stored. {count(reasons.length)} {reasons.length === 1 ? "thing is" : "things are"} wrong:
      <Scroller label={`What is wrong with ${name}`} className="mt-1 max-h-48 overflow-y-auto font-mono">
        <ul>
          {reasons.map((reason) => (
            <li key={`${placeOf(reason)} ${reason.msg}`} className="break-words">
              <span className="text-text">{placeOf(reason)}</span> {reason.msg}
              {shown(reason.input)}
            </li>
          ))}
        </ul>
      </Scroller>
    </Refused>
  );
}

const Refused = ({ children }: { children: ReactNode }) => (
  <div role="alert" className="rounded-md bg-error-bg px-3 py-2 text-table text-text-2">
    {children}
  </div>
);

function adviceFor(error: Error, name: string): string {
  if (/^session already exists/i.test(error.message))
    return "Its experiment_name is taken: change it in the file, or rename the experiment that has it.";
  if (!/\.json$/i.test(name)) return "Files that are no JSON are uploaded by the command above.";
  return "";
}

/** `results[3].start_time` */
const placeOf = ({ loc = [] }: Reason): string =>
  loc
    .slice(1)
    .map((part, index) => (typeof part === "number" ? `[${part}]` : index > 0 ? `.${part}` : part))
    .join("") || "the upload";

/** What was found there, when it is short. */
function shown(input: unknown): string {
  if (input === undefined || input === null || typeof input === "object") return "";
  const text = JSON.stringify(input);
  return text.length > 60 ? "" : `, not ${text}`;
}
