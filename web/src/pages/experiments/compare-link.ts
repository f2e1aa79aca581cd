/** What the address of a comparison says: which experiments, in their order, and the one that the others are compared with. */
export const compareSearch = (session_ids: readonly string[], baseline?: string) => ({
  experiments: session_ids.join(","),
  ...(baseline !== undefined && { baseline }),
});
