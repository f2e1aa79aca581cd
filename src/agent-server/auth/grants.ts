import type { AuthResource, Caller, Grant } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";

/** Returns the caller's grant for a resource; undefined for callers that were not authenticated by a handler. */
function grantOf({ user, grants }: Caller, resource: AuthResource): Grant | undefined {
  if (!user) return undefined;
  const grant = grants?.[resource];
  if (!grant) throw new ApiError("auth_failed", {}, new Error(`access to ${resource} was not authorized`));
  return grant;
}

/**
 * Returns the filter for the records that a caller can access; undefined if the caller can access all records of the workspace.
 *
 * @throws ApiError auth_failed if the request was not authorized for the resource
 */
export const filterOf = (caller: Caller, resource: AuthResource) => grantOf(caller, resource)?.filter;

/** Returns the metadata that a handler adds to records that are created without metadata in the request. */
export const grantedMetadata = (caller: Caller, resource: AuthResource) => grantOf(caller, resource)?.metadata ?? {};
