import type { Context } from "hono";

/** The answer to a deletion: the clients of this API expect a body. */
export const gone = (context: Context, what: string): Response => context.json({ message: `${what} deleted` });
