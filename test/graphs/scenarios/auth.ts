import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

type Value = { metadata?: Record<string, unknown> | null; namespace?: string[] | null };

let calls = 0;

/** `Bearer <name>` is the user; some names stand for mistakes of a handler. */
export const auth = new Auth()
  .authenticate(async (request) => {
    const [, name = ""] = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    calls++;
    switch (name) {
      case "":
        throw new HTTPException(401, { message: "Who are you?", headers: { "x-reason": "no token" } });
      case "poor":
        throw new HTTPException(402, { message: "Pay first" });
      case "throws":
        throw new TypeError("internal detail");
      case "nobody":
        return null as never;
      case "unnamed":
        return { identity: "", permissions: [] };
      case "waits":
        return await new Promise<never>(() => undefined);
      case "blocks":
        for (;;);
      case "exits":
        return process.exit(3);
    }
    return {
      identity: name,
      permissions: ["admin", "threads:write"],
      team: "blue",
      nth_call: calls,
      path: new URL(request.url).pathname,
    };
  })
  .on("*", ({ value, user }) => {
    const own = { owner: user.identity };
    (value as Value).metadata = { ...(value as Value).metadata, ...own };
    return own;
  })
  // biome-ignore lint/suspicious/noExplicitAny: the types of the class have no $or
  .on("threads:read", ({ user: { identity } }): any => ({
    $or: [{ owner: identity }, { readers: { $contains: identity } }, { $and: [{ public: { $eq: "yes" } }] }],
  }))
  .on("threads:create_run", ({ value, user: { identity } }) => {
    if (identity === "careful" && value.kwargs?.command) throw new HTTPException(403, { message: "No commands" });
    value.metadata = { ...value.metadata, owner: identity, assistant_seen: value.assistant_id };
    return { owner: identity };
  })
  .on("threads:delete", ({ user }) => (user.identity === "guest" ? false : { owner: user.identity }))
  .on("crons:search", ({ user }) => ({ owner: user.identity === "sloppy" ? (undefined as never) : user.identity }))
  // biome-ignore lint/suspicious/noExplicitAny: the types of the class have no $or
  .on("crons:update", ({ user: { identity } }): any => ({
    $or: [{ owner: identity }, { editors: { $contains: identity } }],
  }))
  .on("assistants:search", ({ user }) => ({ owner: user.identity }))
  .on("store", ({ value, user }) => {
    const { namespace } = value as Value;
    (value as Value).namespace = [user.identity, ...(namespace ?? [])];
  });
