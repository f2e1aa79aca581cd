import { ApiError } from "../../platform/errors.ts";
import { isLoopbackHost } from "../../platform/lib/safe-fetch/addresses.ts";
import { type FetchRules, urlRefusal } from "../../platform/lib/safe-fetch/safe-fetch.ts";

/** The URLs that runs may call: `webhooks.url` of langgraph.json. */
export interface WebhookUrlSettings {
  /** Default: true, except for loopback addresses. */
  require_https: boolean | undefined;
  /** Default: 443 and 80, and every port of loopback addresses. */
  allowed_ports: readonly number[] | undefined;
  /** Host names; `*.example.com` for the subdomains of a name. Default: all. */
  allowed_domains: readonly string[] | undefined;
  max_url_length: number;
  disable_loopback: boolean;
}

const DEFAULT_PORTS = [443, 80];

/** Decides which URLs receive webhooks. */
export class WebhookPolicy {
  /** The rules for the connection. {@link refusal} checks the scheme and the port. */
  readonly rules: FetchRules;
  readonly is_enabled: boolean;
  readonly #settings: WebhookUrlSettings;
  readonly #has_app: boolean;

  /**
   * @param is_enabled false: runs send no webhooks (`http.disable_webhooks`)
   * @param has_app whether the project has an HTTP app. A URL that is only a path refers to its routes.
   */
  constructor(is_enabled: boolean, settings: WebhookUrlSettings, has_app: boolean) {
    this.is_enabled = is_enabled;
    this.#settings = settings;
    this.#has_app = has_app;
    this.rules = { allow_loopback: !settings.disable_loopback, allow_http_and_all_ports: true };
  }

  /**
   * Checks the webhook of a new run. Returns the URL that is called when the run ends; null for none.
   *
   * @throws ApiError invalid_request
   */
  accept(url: string | null | undefined): string | null {
    if (!this.is_enabled || url == null) return null;
    const refusal = this.refusal(url);
    if (refusal !== undefined) throw new ApiError("invalid_request", { reason: `body.webhook: ${refusal}` });
    return url;
  }

  /** Returns the reason why a URL is refused, or undefined. The addresses of its host are checked when it is called. */
  refusal(text: string): string | undefined {
    const { max_url_length, allowed_domains, ...settings } = this.#settings;
    if (text.length > max_url_length)
      return `The URL is ${text.length} characters long; the maximum is ${max_url_length} (webhooks.url.max_url_length).`;
    if (isPath(text)) return this.#pathRefusal();
    const url = URL.parse(text);
    if (!url)
      return "The URL must be absolute, or it must be the path of a route of the project (http.app). A path must start with exactly one slash.";
    const isLoopback = isLoopbackHost(url.hostname);
    const { require_https = !isLoopback, allowed_ports = isLoopback ? undefined : DEFAULT_PORTS } = settings;
    if (require_https && url.protocol !== "https:")
      return "The URL must begin with https:// (webhooks.url.require_https).";
    const refusal = urlRefusal(text, this.rules);
    if (refusal !== undefined) return refusal;
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    if (allowed_ports && !allowed_ports.includes(port))
      return `Port ${port} is not allowed. Allowed ports (webhooks.url.allowed_ports): ${allowed_ports.join(", ") || "none"}.`;
    if (allowed_domains && !allowed_domains.some((domain) => isIn(url.hostname, domain)))
      return `Host ${url.hostname} is not allowed. Allowed hosts (webhooks.url.allowed_domains): ${allowed_domains.join(", ") || "none"}.`;
    return undefined;
  }

  /** Paths can be forbidden, because a caller could use them to reach routes that trust requests from this machine. */
  #pathRefusal(): string | undefined {
    if (!this.#has_app)
      return "The URL is a path to a route of the project, but the project has no http.app: use an absolute URL.";
    if (this.#settings.disable_loopback)
      return "Paths to routes of the project are allowed only if webhooks.url.disable_loopback is false.";
    return undefined;
  }
}

/** Whether a webhook is sent to a route of the project, within the process. */
export const isPath = (url: string): boolean => /^\/(?!\/)/.test(url);

const isIn = (hostname: string, domain: string): boolean =>
  domain.startsWith("*.") ? hostname.endsWith(domain.slice(1)) : hostname === domain;
