import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { API_URL } from "../../api/base.ts";
import { Button } from "../../ui/button.tsx";
import { CodeBlock } from "../../ui/code-block.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Checkbox, Field, Input } from "../../ui/field.tsx";
import { Select } from "../../ui/select.tsx";
import { toast } from "../../ui/toast.tsx";
import { connectionsKey, createProvider, discoverProvider } from "./queries.ts";

type Way = "client" | "mcp";

const WAYS: readonly { way: Way; label: string }[] = [
  { way: "client", label: "With a client registered there" },
  { way: "mcp", label: "From an MCP server" },
];

const METHODS = [
  { value: "client_secret_post", label: "In the body" },
  { value: "client_secret_basic", label: "In a header" },
  { value: "none", label: "No secret" },
] as const;
type Method = (typeof METHODS)[number]["value"];

const EMPTY = {
  provider_id: "",
  name: "",
  client_id: "",
  client_secret: "",
  auth_url: "",
  token_url: "",
  revocation_url: "",
  mcp_server_url: "",
  uses_pkce: true,
  token_endpoint_auth_method: "client_secret_post" as Method,
};
type Draft = typeof EMPTY;
type TextField = {
  [K in keyof Draft]: Draft[K] extends Method ? never : Draft[K] extends string ? K : never;
}[keyof Draft];

function make({ mcp_server_url, client_secret, revocation_url, ...draft }: Draft, way: Way) {
  const { provider_id, name } = draft;
  if (way === "mcp") return discoverProvider({ provider_id, name, mcp_server_url });
  return createProvider({
    ...draft,
    client_secret: client_secret || null,
    revocation_url: revocation_url || null,
  });
}

/** Makes a provider, by what its settings say or by what an MCP server says of itself. */
export function ProviderForm({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState(EMPTY);
  const [way, setWay] = useState<Way>("client");
  const change = (changed: Partial<Draft>) => setDraft({ ...draft, ...changed });
  const making = useMutation({
    mutationFn: () => make(draft, way),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: connectionsKey });
      toast(`The provider “${draft.name}” is there.`);
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    making.mutate();
  };
  const text = (
    field: TextField,
    label: string,
    more: { hint?: string; placeholder?: string; optional?: true } = {},
  ) => (
    <Field label={label} hint={more.hint} isRequired={!more.optional}>
      {(props) => (
        <Input
          {...props}
          required={!more.optional}
          type={field === "client_secret" ? "password" : "text"}
          autoComplete={field === "client_secret" ? "new-password" : "off"}
          placeholder={more.placeholder}
          value={draft[field]}
          onChange={({ target }) => change({ [field]: target.value.trimStart() })}
        />
      )}
    </Field>
  );
  return (
    <Dialog
      open
      onClose={onClose}
      title="New provider"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button form="provider" type="submit" look="primary" disabled={making.isPending}>
            Make the provider
          </Button>
        </>
      }
    >
      <form id="provider" onSubmit={submit} className="grid grid-cols-1 gap-4">
        <fieldset className="flex flex-wrap gap-x-5 gap-y-1">
          <legend className="sr-only">How</legend>
          {WAYS.map((one) => (
            <label key={one.way} className="flex items-center gap-2 text-body">
              <input
                type="radio"
                name="way"
                className="size-3.5 accent-accent"
                checked={way === one.way}
                onChange={() => setWay(one.way)}
              />
              {one.label}
            </label>
          ))}
        </fieldset>
        <p className="text-table text-text-3">
          What is marked with <span className="text-error">*</span> is needed.
        </p>
        <div className="grid grid-cols-2 gap-3">
          {text("name", "Name", { placeholder: "GitHub" })}
          {text("provider_id", "Id", { placeholder: "github", hint: "Agents ask for it by this." })}
        </div>
        {way === "mcp" && text("mcp_server_url", "MCP server", { placeholder: "https://mcp.example.com/mcp" })}
        {way === "client" && (
          <>
            <div className="grid grid-cols-1 gap-1 text-table">
              <p className="text-text-3">
                Register this address there first, as the redirect (callback) URL of your client:
              </p>
              <CodeBlock code={`${API_URL}/v2/auth/callback/${draft.provider_id || "…"}`} />
            </div>
            {text("client_id", "Client id")}
            <div className="grid grid-cols-2 gap-3">
              {text("client_secret", "Client secret", { optional: true, hint: "Kept encrypted, shown nowhere." })}
              <Field label="How the secret is sent">
                {({ id }) => (
                  <Select
                    id={id}
                    value={draft.token_endpoint_auth_method}
                    options={METHODS}
                    onChange={(token_endpoint_auth_method) => change({ token_endpoint_auth_method })}
                  />
                )}
              </Field>
            </div>
            {text("auth_url", "Authorization URL", { placeholder: "https://github.com/login/oauth/authorize" })}
            {text("token_url", "Token URL", { placeholder: "https://github.com/login/oauth/access_token" })}
            {text("revocation_url", "Revocation URL", { optional: true, hint: "Deleted tokens are revoked there." })}
            <Checkbox
              label="PKCE"
              hint="Most providers know it by now, and all should."
              checked={draft.uses_pkce}
              onChange={({ target }) => change({ uses_pkce: target.checked })}
            />
          </>
        )}
        {making.error && (
          <p role="alert" className="text-error text-table">
            {making.error.message}
          </p>
        )}
      </form>
    </Dialog>
  );
}
