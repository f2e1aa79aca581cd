import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** `Bearer <name>` is the user, who owns the records. The header `x-refuse` names an event that is refused. */
export const auth = new Auth()
  .authenticate(async (request) => {
    const [, name] = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    if (name === undefined) throw new HTTPException(401, { message: "Who are you?" });
    return { identity: name, permissions: [], refuse: request.headers.get("x-refuse") };
  })
  .on("*", ({ event, value, user }) => {
    if (event === (user as { refuse?: string }).refuse)
      throw new HTTPException(403, { message: `${event} is refused` });
    const own = { owner: user.identity };
    const record = value as { metadata?: object };
    record.metadata = { ...record.metadata, ...own };
    return own;
  });
