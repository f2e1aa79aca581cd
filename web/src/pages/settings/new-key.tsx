import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { ApiKeyCreate, NewApiKey } from "../../../../src/access/contract/admin.ts";
import { DEFAULT_SCOPES, SCOPES, type Scope } from "../../../../src/platform/contract/caller.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { CodeBlock } from "../../ui/code-block.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Checkbox, Field, Input } from "../../ui/field.tsx";
import { keysQuery } from "./queries.ts";

const MEANING: Record<Scope, string> = {
  agents: "Assistants, threads and runs.",
  experiments: "Datasets, uploads, feedback.",
  tokens: "The user's own OAuth tokens.",
  providers: "OAuth providers, to which everybody's tokens are sent.",
  deployments: "The control plane, which builds and runs code.",
  service: "To name another user, for programs that act for many.",
  admin: "All of these, tokens of agents, and keys and workspaces themselves.",
};

/** Makes a key and shows it, this once. */
export function NewKey({ open, onClose }: { open: boolean; onClose(): void }) {
  return open ? <NewKeyDialog onClose={onClose} /> : null;
}

function NewKeyDialog({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [user_id, setUser] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(DEFAULT_SCOPES);
  const making = useMutation({
    mutationFn: (body: ApiKeyCreate) => api.post<NewApiKey>("/admin/keys", body),
    onSuccess: () => client.invalidateQueries(keysQuery),
  });
  if (making.data) return <Made made={making.data} onClose={onClose} />;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    making.mutate({ name, user_id: user_id || undefined, scopes: [...scopes] } as ApiKeyCreate);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New key"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button form="new-key" type="submit" look="primary" disabled={making.isPending || scopes.length === 0}>
            Make the key
          </Button>
        </>
      }
    >
      <form id="new-key" onSubmit={submit} className="grid gap-4">
        <Field label="Name" hint="For people: what it is for.">
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
        <Field label="User" hint="Whose it is. You, when it is left empty.">
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
              hint={MEANING[scope]}
              checked={scopes.includes(scope)}
              onChange={({ target }) =>
                setScopes(SCOPES.filter((each) => (each === scope ? target.checked : scopes.includes(each))))
              }
            />
          ))}
        </fieldset>
        {making.error && (
          <p role="alert" className="text-error text-table">
            {making.error.message}
          </p>
        )}
      </form>
    </Dialog>
  );
}

const Made = ({ made, onClose }: { made: NewApiKey; onClose(): void }) => (
  <Dialog
    open
    onClose={onClose}
    title={`The key “${made.name}”`}
    description="Copy it now: it is shown this once, and the server keeps only what it can be recognised by."
    footer={
      <Button look="primary" onClick={onClose}>
        Done
      </Button>
    }
  >
    <CodeBlock code={made.key} label="Copy the key" />
  </Dialog>
);
