import { MoreHorizontal } from "lucide-react";
import type { OAuthProvider, OAuthTokenSummary } from "../../../../src/access/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { DASH } from "../../ui/format.ts";
import { Menu } from "../../ui/overlay/menu.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { Badge } from "../../ui/status.tsx";

export function ProviderSection({
  provider,
  tokens,
  onConnect,
  onMakeDefault,
  onDelete,
}: {
  provider: OAuthProvider;
  tokens: readonly OAuthTokenSummary[];
  onConnect(): void;
  onMakeDefault(token: OAuthTokenSummary): void;
  onDelete(of: "provider" | "tokens" | "token", token?: OAuthTokenSummary): void;
}) {
  const { name, provider_id, auth_url, mcp_server_url } = provider;
  return (
    <section aria-label={name} className="rounded-lg border border-line">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1 border-line border-b bg-sunken px-4 py-2">
        <h2 className="font-semibold text-body">{name}</h2>
        <Badge mono>{provider_id}</Badge>
        <span className="min-w-0 flex-1 truncate text-table text-text-3">{mcp_server_url ?? hostOf(auth_url)}</span>
        <span className="flex gap-2">
          <Button small onClick={onConnect} aria-label={`Connect ${name} account`}>
            Connect
          </Button>
          <Menu
            items={[
              {
                label: "Disconnect all",
                hint: "Disconnects all your accounts for this provider.",
                danger: true,
                disabled: tokens.length === 0,
                onSelect: () => onDelete("tokens"),
              },
              {
                label: "Delete provider",
                hint: "Deletes the provider and all users' tokens for it.",
                danger: true,
                onSelect: () => onDelete("provider"),
              },
            ]}
          >
            <Button small square aria-label={`Actions for ${name}`}>
              <MoreHorizontal size={14} aria-hidden />
            </Button>
          </Menu>
        </span>
      </header>
      {tokens.length === 0 && <p className="px-4 py-3 text-table text-text-3">No accounts connected</p>}
      <ul className="divide-y divide-line">
        {tokens.map((token) => (
          <Account
            key={token.id}
            token={token}
            onMakeDefault={() => onMakeDefault(token)}
            onDelete={() => onDelete("token", token)}
          />
        ))}
      </ul>
    </section>
  );
}

function Account({
  token,
  onMakeDefault,
  onDelete,
}: {
  token: OAuthTokenSummary;
  onMakeDefault(): void;
  onDelete(): void;
}) {
  const { provider_account_label, scopes, expires_at, is_default, created_at, id } = token;
  const account = provider_account_label ?? `Account ${id.slice(-8)}`;
  return (
    <li className="grid grid-cols-[210px_minmax(0,1fr)_140px_120px_200px] items-center gap-x-4 gap-y-1.5 px-4 py-2 text-table max-sm:grid-cols-2">
      <span className="flex items-center gap-2 font-medium max-sm:col-span-2">
        {account} {is_default && <Badge>default</Badge>}
      </span>
      <span className="flex min-w-0 flex-wrap gap-1 max-sm:col-span-2">
        {scopes.map((scope) => (
          <Badge key={scope} mono>
            {scope}
          </Badge>
        ))}
        {scopes.length === 0 && <span className="text-text-3">No scopes</span>}
      </span>
      <span className="text-text-2">
        connected <RelativeTime time={created_at} />
      </span>
      <span
        className="text-text-2"
        title="If the provider supports refresh tokens, an expired token is refreshed when an agent next requests it."
      >
        expires {expires_at ? <RelativeTime time={expires_at} isAhead /> : DASH}
      </span>
      <span className="flex justify-end gap-2 max-sm:col-span-2 max-sm:justify-start">
        {!is_default && (
          <Button small onClick={onMakeDefault} aria-label={`Set as default: ${account}`}>
            Set as default
          </Button>
        )}
        <Button small look="danger" onClick={onDelete} aria-label={`Disconnect ${account}`}>
          Disconnect
        </Button>
      </span>
    </li>
  );
}

const hostOf = (url: string): string => URL.parse(url)?.host ?? url;
