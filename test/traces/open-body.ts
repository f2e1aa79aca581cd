import type { Scenario } from "../http/scenario.ts";

const BODY = { "content-type": "multipart/form-data; boundary=----boundary" };
const MIB = 2 ** 20;

/** A body of 60 MiB that does not end before `end`, as long as the service reads it. */
export function openBody(api: Scenario, headers: Record<string, string>, end: PromiseWithResolvers<void>) {
  let sent = 0;
  const body = new ReadableStream({
    async pull(controller) {
      if (sent === 60) await end.promise;
      if (sent++ < 60) controller.enqueue(new Uint8Array(MIB));
      else controller.error(new Error("The client disconnects."));
    },
  });
  const init = { method: "POST", body, headers: { ...BODY, ...headers }, duplex: "half" } as RequestInit;
  const answer = api.service.threadmill.fetch(new Request("http://localhost/api/v1/runs/multipart", init));
  return { answer, end: end.resolve, sent: () => sent };
}
