import type { Clock } from "../../platform/lib/clock.ts";
import type { TokenSecret } from "./token-secret.ts";

/** A token that a caller has brought. */
interface GivenToken {
  access_token: string;
  refresh_token?: string | null | undefined;
  expires_in_seconds?: number | null | undefined;
}

export const givenSecret = ({ access_token, refresh_token }: GivenToken): TokenSecret => ({
  access_token,
  ...(refresh_token && { refresh_token }),
});

/** In milliseconds since the epoch; null for a token that does not expire. */
export const expiryOf = ({ expires_in_seconds }: GivenToken, clock: Clock): number | null =>
  typeof expires_in_seconds === "number" ? clock.now() + expires_in_seconds * 1000 : null;
