import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { ApiKeyCreate, NewApiKey } from "../../../../src/access/contract/admin.ts";
import { DEFAULT_SCOPES, SCOPES, type Scope } from "../../../../src/platform/contract/caller.ts";
import { credentials, signIn } from "../../api/credentials.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { CodeBlock } from "../../ui/code-block.tsx";
import { Checkbox, Field, Input } from "../../ui/form/field.tsx";
import { Dialog } from "../../ui/overlay/dialog.tsx";
import { FormDialog } from "../../ui/overlay/form-dialog.tsx";
import { keysQuery } from "./queries.ts";

const SCOPE_HINTS: Record<Scope, string> = {
  agents: "Assistants, threads and runs",
  experiments: "Datasets, experiments, traces, feedback, annotation queues and prompts",
  tokens: "The user's OAuth tokens",
  providers: "OAuth providers, including the URLs to which all users' tokens are sent",
  deployments: "Deployments, including building and running their code",
  service: "Act on behalf of other users",
  admin: "Everything that the other scopes permit. Also: agents' tokens, deployment secrets, API keys and workspaces",
};

export function NewKey({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [user_id, setUser] = useState("");
  // The first key ends open access. Without `admin`, no further key could be created here.
  const [isFirst] = useState(() => credentials().key === undefined);
  const [scopes, setScopes] = useState<readonly Scope[]>(isFirst ? [...DEFAULT_SCOPES, "admin"] : DEFAULT_SCOPES);
  const creating = useMutation({
    mutationFn: (body: ApiKeyCreate) => api.post<NewApiKey>("/admin/keys", body),
    onSuccess: ({ key }) => {
      if (isFirst) signIn(key, false);
      // Not awaited: the key has to be shown even if the list cannot be loaded.
      void client.invalidateQueries(isFirst ? undefined : keysQuery);
    },
  });
  if (creating.data) return <CreatedKey apiKey={creating.data} onClose={onClose} />;
  return (
    <FormDialog
      title="New key"
      description={
        isFirst &&
        "This is the first key. Afterwards, each request needs a key. This tab uses the new key until you close the tab."
      }
      action="Create key"
      disabled={creating.isPending || scopes.length === 0}
      error={creating.error}
      onSubmit={() => creating.mutate({ name, user_id: user_id || undefined, scopes: [...scopes] } as ApiKeyCreate)}
      onClose={onClose}
    >
      <Field label="Name" hint="Describe what the key is used for.">
        {(props) => (
          <Input
            {...props}
            required
            autoFocus
            maxLength={256}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label="User" hint="User ID of the key's owner. Leave empty to create the key for yourself.">
        {(props) => (
          <Input {...props} maxLength={256} value={user_id} onChange={(event) => setUser(event.target.value)} />
        )}
      </Field>
      <fieldset className="grid gap-1.5">
        <legend className="mb-1 font-medium text-table">Scopes</legend>
        {SCOPES.map((scope) => (
          <Checkbox
            key={scope}
            label={scope}
            hint={SCOPE_HINTS[scope]}
            checked={scopes.includes(scope)}
            disabled={isFirst && scope === "admin"}
            onChange={({ target }) =>
              setScopes(SCOPES.filter((each) => (each === scope ? target.checked : scopes.includes(each))))
            }
          />
        ))}
      </fieldset>
    </FormDialog>
  );
}

const CreatedKey = ({ apiKey, onClose }: { apiKey: NewApiKey; onClose(): void }) => (
  <Dialog
    open
    onClose={onClose}
    title={`API key “${apiKey.name}”`}
    description="Copy the key now. The server stores only a hash and cannot show the key again."
    footer={
      <Button look="primary" onClick={onClose}>
        Done
      </Button>
    }
  >
    <CodeBlock code={apiKey.key} label="Copy key" />
  </Dialog>
);
