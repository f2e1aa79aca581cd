import { useState } from "react";
import { NEVER_DEPLOYED } from "../../../../src/control-plane/contract/ignore-rules.ts";
import { Field, Input } from "../../ui/field.tsx";
import { bytes, count } from "../../ui/format.ts";
import { type SourceFile, sourceOf } from "./source-folder.ts";

export type SourceKind = "folder" | "git" | "image";

/** What a revision is to be made of, as far as it has been said. */
export interface SourceDraft {
  kind: SourceKind;
  /** Of a folder: what of it is deployed. */
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

/** Why nothing can be deployed of this folder; undefined when it can, or none was chosen. */
export function whyNoProject({ files, config_path }: SourceDraft): string | undefined {
  const wanted = config_path.replace(/^\.\//, "") || CONFIG;
  if (files.length === 0 || files.some(({ path }) => path === wanted)) return undefined;
  return `There is no ${wanted} in it: choose the folder that has it, or say below where it is.`;
}

/** Fields for what a revision is made of, by the kind of its source. */
export function SourceFields({
  draft,
  onChange,
  isNew,
}: {
  draft: SourceDraft;
  onChange(draft: SourceDraft): void;
  /** The repository is chosen once, for all revisions. */
  isNew: boolean;
}) {
  const text = (name: "config_path" | "repo_url" | "repo_ref" | "image_uri") => ({
    value: draft[name],
    onChange: ({ target }: { target: { value: string } }) => onChange({ ...draft, [name]: target.value }),
  });
  const configPath = (
    <Field label="Path of the configuration" hint={`Where ${CONFIG} is, relative to the root; may be left empty.`}>
      {(props) => <Input {...props} {...text("config_path")} placeholder={CONFIG} className="font-mono" />}
    </Field>
  );
  if (draft.kind === "image")
    return (
      <Field
        label="Image"
        hint="An agent server that was built elsewhere. The service needs Docker to run it (docs/deploy.md)."
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
        <Field label="Repository" hint="Any that the server's git can fetch without a password.">
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
      <Field label="Branch or tag" hint="The default branch when it is left empty; a tag as refs/tags/v1.">
        {(props) => <Input {...props} {...text("repo_ref")} placeholder="main" className="font-mono" />}
      </Field>
      {configPath}
    </>
  );
}

function Folder({ draft, onChange }: { draft: SourceDraft; onChange(draft: SourceDraft): void }) {
  const [left, setLeft] = useState(0);
  const choose = async (chosen: readonly File[]) => {
    const files = await sourceOf(chosen);
    // The folders that never are deployed would make this number tell nothing.
    const own = chosen.filter((file) => !file.webkitRelativePath.split("/").some((name) => NEVER_DEPLOYED.test(name)));
    setLeft(own.length - files.length);
    onChange({ ...draft, files });
  };
  const { files } = draft;
  const found = `${count(files.length)} files, ${bytes(sizeOf(files))}${left > 0 ? `; ${count(left)} left out by .gitignore or .dockerignore` : ""}.`;
  return (
    <Field
      label="Folder"
      error={whyNoProject(draft)}
      hint={
        files.length > 0 ? found : "A project with a langgraph.json. What .gitignore and .env files hold is not sent."
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
