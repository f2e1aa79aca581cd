import { endOfAccess, type Gone } from "./client-abort.ts";

const encoder = new TextEncoder();

/** An answer that comes sooner is sent as an ordinary response, with its length. */
const SOON_MS = 1_000;
/** White space before JSON is no part of it, but tells proxies and clients that the connection lives. */
const KEEP_ALIVE_MS = 5_000;

const FAILED = {
  error: "ServiceError",
  message: "The service could not wait for the run. Join the run to see how it ends.",
};

/**
 * A JSON response whose text may take long. After a second the status goes out, then a line break now and then,
 * at last the text.
 *
 * @param gone aborted when the client hangs up
 */
export async function waitingResponse(
  text: Promise<string>,
  headers: Record<string, string>,
  gone: Gone,
  onError: (error: unknown) => void,
): Promise<Response> {
  const unwatch = gone.watchAccess();
  void text.then(unwatch, unwatch);
  const all = { "content-type": "application/json", ...headers };
  const soon = await within(text, SOON_MS);
  if (soon !== undefined) return new Response(soon, { headers: all });
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const done = await within(text, KEEP_ALIVE_MS);
        controller.enqueue(encoder.encode(done ?? "\n"));
        if (done !== undefined) controller.close();
      } catch (error) {
        const refusal = endOfAccess(gone);
        if (gone.signal.aborted && !refusal) return controller.error(error);
        if (!refusal) onError(error);
        // The status is out; a failure in the form of a failed run is what clients understand.
        controller.enqueue(encoder.encode(JSON.stringify({ __error__: refusal ?? FAILED })));
        controller.close();
      }
    },
    cancel: () => gone.abort(new Error("The client is gone.")),
  });
  return new Response(body, { headers: all });
}

async function within(text: Promise<string>, ms: number): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([text, late]);
  } finally {
    clearTimeout(timer);
  }
}
