import type { AuthResource, Caller, Grant } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";

/** The grant for a resource; undefined for callers that no handler restricts. */
function grantOf({ user, grants }: Caller, resource: AuthResource): Grant | undefined {
  if (!user) return undefined;
  const grant = grants?.[resource];
  if (!grant) throw new ApiError("auth_failed", {}, new Error(`access to ${resource} was not authorized`));
  return grant;
}

/**
 * The condition on the records that a caller can access; undefined for all records of the workspace.
 *
 * @throws ApiError auth_failed if the request was not authorized for the resource
 */
export const filterOf = (caller: Caller, resource: AuthResource) => grantOf(caller, resource)?.filter;

/** The metadata that a handler adds to a record that has no metadata in the request. */
export const grantedMetadata = (caller: Caller, resource: AuthResource) => grantOf(caller, resource)?.metadata ?? {};
