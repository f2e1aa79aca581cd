import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { ApiKeyCreate, NewApiKey } from "../../../../src/access/contract/admin.ts";
import { DEFAULT_SCOPES, SCOPES, type Scope } from "../../../../src/platform/contract/caller.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { CodeBlock } from "../../ui/code-block.tsx";
import { Checkbox, Field, Input } from "../../ui/form/field.tsx";
import { Dialog } from "../../ui/overlay/dialog.tsx";
import { keysQuery } from "./queries.ts";

const SCOPE_HINTS: Record<Scope, string> = {
  agents: "Assistants, threads and runs",
  experiments: "Datasets, uploads and feedback",
  tokens: "The OAuth tokens of the user",
  providers: "OAuth providers, which receive the tokens of all users",
  deployments: "The control plane, which builds and runs code",
  service: "Act on behalf of other users",
  admin: "All scopes, agent tokens, API keys and workspaces",
};

/** Creates an API key and shows it once. */
export function NewKey({ open, onClose }: { open: boolean; onClose(): void }) {
  return open ? <NewKeyDialog onClose={onClose} /> : null;
}

function NewKeyDialog({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [user_id, setUser] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(DEFAULT_SCOPES);
  const creating = useMutation({
    mutationFn: (body: ApiKeyCreate) => api.post<NewApiKey>("/admin/keys", body),
    onSuccess: () => client.invalidateQueries(keysQuery),
  });
  if (creating.data) return <CreatedKey apiKey={creating.data} onClose={onClose} />;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    creating.mutate({ name, user_id: user_id || undefined, scopes: [...scopes] } as ApiKeyCreate);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New key"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button form="new-key" type="submit" look="primary" disabled={creating.isPending || scopes.length === 0}>
            Create key
          </Button>
        </>
      }
    >
      <form id="new-key" onSubmit={submit} className="grid gap-4">
        <Field label="Name" hint="Describes what the key is used for.">
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
        <Field label="User" hint="Owner (default: you)">
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
              onChange={({ target }) =>
                setScopes(SCOPES.filter((each) => (each === scope ? target.checked : scopes.includes(each))))
              }
            />
          ))}
        </fieldset>
        {creating.error && (
          <p role="alert" className="text-error text-table">
            {creating.error.message}
          </p>
        )}
      </form>
    </Dialog>
  );
}

const CreatedKey = ({ apiKey, onClose }: { apiKey: NewApiKey; onClose(): void }) => (
  <Dialog
    open
    onClose={onClose}
    title={`API key “${apiKey.name}”`}
    description="Copy the key now. It is not shown again: the server stores only its hash."
    footer={
      <Button look="primary" onClick={onClose}>
        Done
      </Button>
    }
  >
    <CodeBlock code={apiKey.key} label="Copy key" />
  </Dialog>
);
