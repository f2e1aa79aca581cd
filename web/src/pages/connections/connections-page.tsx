import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import type { OAuthProvider, OAuthTokenSummary } from "../../../../src/access/contract/records.ts";
import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/overlay/confirm.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Connect } from "./connect.tsx";
import { connectionsRoute } from "./page.ts";
import { ProviderForm } from "./provider-form.tsx";
import { ProviderSection } from "./provider-section.tsx";
import {
  connectionsKey,
  deleteProvider,
  deleteToken,
  deleteTokens,
  makeDefault,
  providersQuery,
  tokensQuery,
} from "./queries.ts";

/** The deletion that the user must confirm. */
type Deletion =
  | { of: "provider"; provider: OAuthProvider }
  | { of: "tokens"; provider: OAuthProvider }
  | { of: "token"; provider: OAuthProvider; token: OAuthTokenSummary };

export function ConnectionsPage() {
  const { create, connect } = connectionsRoute.useSearch();
  const navigate = connectionsRoute.useNavigate();
  const client = useQueryClient();
  const providers = useQuery(providersQuery);
  const tokens = useQuery(tokensQuery);
  const [deletion, setDeletion] = useState<Deletion>();
  const refresh = () => client.invalidateQueries({ queryKey: connectionsKey });
  const settingDefault = useMutation({
    mutationFn: (token: OAuthTokenSummary) => makeDefault(token.id),
    onError: (error) => toast(error.message, { error: true }),
    onSettled: refresh,
  });
  const show = (search: { create?: true; connect?: string }) => void navigate({ search });
  useKeys({ n: { does: "New provider", run: () => show({ create: true }) } });
  const error = providers.error ?? tokens.error;
  const connecting = providers.data?.find(({ provider_id }) => provider_id === connect);
  return (
    <Page
      title="Connections"
      actions={
        <Button look="primary" aria-keyshortcuts="n" onClick={() => show({ create: true })}>
          <Plus size={15} aria-hidden /> New provider
        </Button>
      }
    >
      <div className="grid max-w-5xl gap-5">
        {error && !(providers.data && tokens.data) ? (
          <ErrorState error={error} retry={() => void refresh()} />
        ) : !(providers.data && tokens.data) ? (
          <SkeletonRows label="Loading providers" height={56} rows={3} />
        ) : providers.data.length === 0 ? (
          <NoProviders />
        ) : (
          providers.data.map((provider) => (
            <ProviderSection
              key={provider.id}
              provider={provider}
              tokens={(tokens.data ?? []).filter(({ provider_id }) => provider_id === provider.provider_id)}
              onConnect={() => show({ connect: provider.provider_id })}
              onMakeDefault={(token) => settingDefault.mutate(token)}
              onDelete={(of, token) =>
                setDeletion(of === "token" && token ? { of, provider, token } : { of: of as "provider", provider })
              }
            />
          ))
        )}
      </div>
      {create && <ProviderForm onClose={() => show({})} />}
      {connecting && <Connect provider={connecting} onClose={() => show({})} />}
      <ConfirmDeletion deletion={deletion} onClose={() => setDeletion(undefined)} onDone={refresh} />
    </Page>
  );
}

const NoProviders = () => (
  <EmptyState
    title="No providers yet"
    command={`import { getToken } from "threadmill/graph";\nconst token = await getToken("github", { scopes: ["repo"] });`}
  >
    An OAuth provider, such as GitHub or Google, issues access tokens. Agents use the tokens to act on behalf of users:
    if a graph node requests a token that the user does not have yet, the run pauses until the user authorizes access.
  </EmptyState>
);

function ConfirmDeletion({
  deletion,
  onClose,
  onDone,
}: {
  deletion: Deletion | undefined;
  onClose(): void;
  onDone(): Promise<unknown>;
}) {
  const name = deletion?.provider.name;
  const texts = {
    provider: {
      title: `Delete provider “${name}”?`,
      text: "All users' and agents' tokens for this provider are deleted. They are also revoked if the provider supports revocation. After that, runs that request a token for this provider fail.",
      done: "Provider deleted",
    },
    tokens: {
      title: `Disconnect all your “${name}” accounts?`,
      text: "Your tokens for this provider are deleted for all agents. They are also revoked if the provider supports revocation. Pending authorizations are cancelled.",
      done: "All accounts disconnected",
    },
    token: {
      title: "Disconnect this account?",
      text: "The account's token is deleted. It is also revoked if the provider supports revocation. After that, runs that need a token for this account pause until you authorize access again.",
      done: "Account disconnected",
    },
  }[deletion?.of ?? "token"];
  return (
    <Confirm
      open={deletion !== undefined}
      onClose={onClose}
      title={texts.title}
      action={deletion?.of === "provider" ? "Delete" : "Disconnect"}
      onConfirm={async () => {
        if (deletion?.of === "provider") await deleteProvider(deletion.provider.provider_id);
        else if (deletion?.of === "tokens") await deleteTokens(deletion.provider.provider_id);
        else if (deletion) await deleteToken(deletion.token.id);
        await onDone();
        toast(texts.done);
      }}
    >
      {texts.text}
    </Confirm>
  );
}
