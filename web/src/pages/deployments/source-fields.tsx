import { useState } from "react";
import { NEVER_DEPLOYED } from "../../../../src/control-plane/contract/ignore-rules.ts";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { Field, Input } from "../../ui/form/field.tsx";
import { bytes, count } from "../../ui/format.ts";
import { type SourceFile, sourceOf } from "./source-folder.ts";

declare module "react" {
  interface InputHTMLAttributes<T> {
    /** Lets the file input select a folder. All browsers support this attribute, and React passes it through. */
    webkitdirectory?: "";
  }
}

export type SourceKind = "folder" | "git" | "image";

export const KIND_OF: Record<Deployment["source"], SourceKind> = {
  internal_source: "folder",
  github: "git",
  internal_docker: "image",
  external_docker: "image",
};

/** A revision's source, as edited in the form. */
export interface SourceDraft {
  kind: SourceKind;
  /** Files of the selected folder that are deployed. */
  files: readonly SourceFile[];
  config_path: string;
  repo_url: string;
  repo_ref: string;
  image_uri: string;
}

export const NO_SOURCE: SourceDraft = {
  kind: "folder",
  files: [],
  config_path: "",
  repo_url: "",
  repo_ref: "",
  image_uri: "",
};

const CONFIG = "langgraph.json";

export const sizeOf = (files: readonly SourceFile[]): number => files.reduce((sum, { file }) => sum + file.size, 0);

/** Explains why the selected folder cannot be deployed. Returns undefined if the folder is valid or none is selected. */
export function projectError({ files, config_path }: SourceDraft): string | undefined {
  const wanted = config_path.replace(/^\.\//, "") || CONFIG;
  if (files.length === 0 || files.some(({ path }) => path === wanted)) return undefined;
  return `The selected folder does not contain ${wanted}. Select the project folder, or enter the configuration path below.`;
}

export function SourceFields({
  draft,
  onChange,
  isNew,
}: {
  draft: SourceDraft;
  onChange(draft: SourceDraft): void;
  /** Whether the form creates a deployment. An existing deployment's repository URL cannot be changed. */
  isNew: boolean;
}) {
  const text = (name: "config_path" | "repo_url" | "repo_ref" | "image_uri") => ({
    value: draft[name],
    onChange: ({ target }: { target: { value: string } }) => onChange({ ...draft, [name]: target.value }),
  });
  const configPath = (
    <Field label="Configuration path" hint={`Optional. Path to ${CONFIG}, relative to the project root.`}>
      {(props) => <Input {...props} {...text("config_path")} placeholder={CONFIG} className="font-mono" />}
    </Field>
  );
  if (draft.kind === "image")
    return (
      <Field
        label="Image"
        hint="Image reference of a prebuilt agent server. Requires Docker or Kubernetes (docs/control-plane.md)."
      >
        {(props) => (
          <Input
            {...props}
            {...text("image_uri")}
            required
            placeholder="registry.example.com/agent:1"
            className="font-mono"
          />
        )}
      </Field>
    );
  if (draft.kind === "folder")
    return (
      <>
        <Folder draft={draft} onChange={onChange} />
        {configPath}
      </>
    );
  return (
    <>
      {isNew && (
        <Field label="Repository" hint="URL of a Git repository that the server can clone without a password.">
          {(props) => (
            <Input
              {...props}
              {...text("repo_url")}
              required
              placeholder="https://github.com/team/agent.git"
              className="font-mono"
            />
          )}
        </Field>
      )}
      <Field
        label="Branch or tag"
        hint="Leave empty for the default branch. For a tag, enter its full ref, such as refs/tags/v1."
      >
        {(props) => <Input {...props} {...text("repo_ref")} placeholder="main" className="font-mono" />}
      </Field>
      {configPath}
    </>
  );
}

function Folder({ draft, onChange }: { draft: SourceDraft; onChange(draft: SourceDraft): void }) {
  const [excluded, setExcluded] = useState(0);
  const choose = async (chosen: readonly File[]) => {
    const files = await sourceOf(chosen);
    // Files that are never deployed, such as those in node_modules, are not counted as excluded.
    const own = chosen.filter((file) => !file.webkitRelativePath.split("/").some((name) => NEVER_DEPLOYED.test(name)));
    setExcluded(own.length - files.length);
    onChange({ ...draft, files });
  };
  const { files } = draft;
  const found = `${count(files.length)} ${files.length === 1 ? "file" : "files"}, ${bytes(sizeOf(files))}${excluded > 0 ? `; ${count(excluded)} excluded by .gitignore or .dockerignore` : ""}`;
  return (
    <Field
      label="Folder"
      error={projectError(draft)}
      hint={
        files.length > 0
          ? found
          : "The project folder that contains langgraph.json. Files such as .env, folders such as node_modules and .git, and files excluded by .gitignore or .dockerignore are not uploaded."
      }
    >
      {(props) => (
        <input
          {...props}
          type="file"
          webkitdirectory=""
          multiple
          required={files.length === 0}
          className="w-full text-table file:mr-3 file:h-8 file:cursor-pointer file:rounded-md file:border file:border-line-strong file:border-solid file:bg-raised file:px-3 file:font-medium file:text-table file:text-text"
          onChange={({ target }) => void choose([...(target.files ?? [])])}
        />
      )}
    </Field>
  );
}
