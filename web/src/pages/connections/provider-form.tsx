import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { API_URL } from "../../api/request.ts";
import { CodeBlock } from "../../ui/code-block.tsx";
import { Checkbox, Field, Input, RadioGroup } from "../../ui/form/field.tsx";
import { Select } from "../../ui/form/select.tsx";
import { FormDialog } from "../../ui/overlay/form-dialog.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { connectionsKey, createProvider, discoverProvider } from "./queries.ts";

type SetupMethod = "client" | "mcp";

const SETUP_METHODS: readonly { value: SetupMethod; label: string }[] = [
  { value: "client", label: "Registered OAuth client" },
  { value: "mcp", label: "Discover from an MCP server" },
];

const AUTH_METHODS = [
  { value: "client_secret_post", label: "Request body (client_secret_post)" },
  { value: "client_secret_basic", label: "Header (client_secret_basic)" },
  { value: "none", label: "None" },
] as const;
type AuthMethod = (typeof AUTH_METHODS)[number]["value"];

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
  token_endpoint_auth_method: "client_secret_post" as AuthMethod,
};
type Draft = typeof EMPTY;
type TextField = {
  [K in keyof Draft]: Draft[K] extends AuthMethod ? never : Draft[K] extends string ? K : never;
}[keyof Draft];

function createFrom({ mcp_server_url, client_secret, revocation_url, ...draft }: Draft, setup: SetupMethod) {
  const { provider_id, name } = draft;
  if (setup === "mcp") return discoverProvider({ provider_id, name, mcp_server_url });
  return createProvider({
    ...draft,
    client_secret: client_secret || null,
    revocation_url: revocation_url || null,
  });
}

/** Creates a provider from OAuth settings or from the metadata of an MCP server. */
export function ProviderForm({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState(EMPTY);
  const [method, setMethod] = useState<SetupMethod>("client");
  const change = (changed: Partial<Draft>) => setDraft({ ...draft, ...changed });
  const creating = useMutation({
    mutationFn: () => createFrom(draft, method),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: connectionsKey });
      toast(`Provider “${draft.name}” created`);
      onClose();
    },
  });
  const text = (
    field: TextField,
    label: string,
    options: { hint?: string; placeholder?: string; optional?: true } = {},
  ) => (
    <Field label={label} hint={options.hint} isRequired={!options.optional}>
      {(props) => (
        <Input
          {...props}
          required={!options.optional}
          type={field === "client_secret" ? "password" : "text"}
          autoComplete={field === "client_secret" ? "new-password" : "off"}
          placeholder={options.placeholder}
          value={draft[field]}
          onChange={({ target }) => change({ [field]: target.value.trimStart() })}
        />
      )}
    </Field>
  );
  return (
    <FormDialog
      title="New provider"
      action="Create provider"
      disabled={creating.isPending}
      error={creating.error}
      onSubmit={() => creating.mutate()}
      onClose={onClose}
    >
      <RadioGroup<SetupMethod>
        inline
        hideLegend
        legend="Method"
        value={method}
        options={SETUP_METHODS}
        onChange={setMethod}
      />
      <p className="text-table text-text-3">
        <span className="text-error">*</span> Required
      </p>
      <div className="grid grid-cols-2 gap-3">
        {text("name", "Name", { placeholder: "GitHub" })}
        {text("provider_id", "ID", { placeholder: "github", hint: "Agents use this ID to request tokens." })}
      </div>
      {method === "mcp" && text("mcp_server_url", "MCP server", { placeholder: "https://mcp.example.com/mcp" })}
      {method === "client" && (
        <>
          <div className="grid grid-cols-1 gap-1 text-table">
            <p className="text-text-3">Register this redirect (callback) URL for your OAuth client:</p>
            <CodeBlock code={`${API_URL}/v2/auth/callback/${draft.provider_id || "…"}`} />
          </div>
          {text("client_id", "Client ID")}
          <div className="grid grid-cols-2 gap-3">
            {text("client_secret", "Client secret", { optional: true, hint: "Stored encrypted. Not shown again." })}
            <Field label="Client authentication">
              {({ id }) => (
                <Select
                  id={id}
                  value={draft.token_endpoint_auth_method}
                  options={AUTH_METHODS}
                  onChange={(token_endpoint_auth_method) => change({ token_endpoint_auth_method })}
                />
              )}
            </Field>
          </div>
          {text("auth_url", "Authorization URL", { placeholder: "https://github.com/login/oauth/authorize" })}
          {text("token_url", "Token URL", { placeholder: "https://github.com/login/oauth/access_token" })}
          {text("revocation_url", "Revocation URL", {
            optional: true,
            hint: "Optional. Called to revoke a token when it is deleted.",
          })}
          <Checkbox
            label="PKCE"
            hint="Recommended. Most providers support PKCE."
            checked={draft.uses_pkce}
            onChange={({ target }) => change({ uses_pkce: target.checked })}
          />
        </>
      )}
    </FormDialog>
  );
}
