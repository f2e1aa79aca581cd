/** The export that `auth.path` names: an `Auth` object of the project's own copy of `@langchain/langgraph-sdk/auth`. */
export interface Auth {
  authenticate: (request: Request) => unknown;
  callbacks: Readonly<Record<string, (context: object) => unknown>>;
}

/** @throws Error unless the export is an Auth with an authenticate handler */
export function asAuth(value: unknown): Auth {
  const handlers = (value as { "~handlerCache"?: Partial<Auth> } | null | undefined)?.["~handlerCache"];
  if (!handlers)
    throw new Error("the export specified in auth.path is not an Auth object from @langchain/langgraph-sdk/auth");
  const { authenticate, callbacks = {} } = handlers;
  if (typeof authenticate !== "function")
    throw new Error(
      "the Auth object specified in auth.path has no authenticate handler: call the authenticate method of the object to add one",
    );
  return { authenticate, callbacks };
}
