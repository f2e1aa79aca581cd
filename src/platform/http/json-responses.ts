import { ApiError } from "../errors.ts";
import { withTimeout } from "../lib/signal.ts";
import { accessEndError, type ClientAbort } from "./client-abort.ts";

const encoder = new TextEncoder();

/** If the text is ready within this time, it is sent as an ordinary response. */
const IMMEDIATE_MS = 1_000;
/** Interval of the line breaks before the JSON text, which keep the connection open. */
const KEEP_ALIVE_MS = 5_000;

const FAILED = {
  error: "ServiceError",
  message:
    "Waiting for the result failed because of an internal error. The operation was not cancelled: request its result again.",
};

/** Returns a JSON response for a slow result. It starts within 1 s and sends a line break every 5 s until the text is ready. */
export async function keepAliveResponse(
  text: Promise<string>,
  headers: Record<string, string>,
  client: ClientAbort,
  onError: (error: unknown) => void,
): Promise<Response> {
  const unwatch = client.watchAccess();
  void text.then(unwatch, unwatch);
  const allHeaders = { "content-type": "application/json", ...headers };
  const immediate = await withTimeout(text, IMMEDIATE_MS);
  if (immediate !== undefined) return new Response(immediate, { headers: allHeaders });
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const done = await withTimeout(text, KEEP_ALIVE_MS);
        controller.enqueue(encoder.encode(done ?? "\n"));
        if (done !== undefined) controller.close();
      } catch (error) {
        const accessError = accessEndError(client);
        if (client.signal.aborted && !accessError) return controller.error(error);
        // For example, the run was rolled back.
        const expected = error instanceof ApiError ? { error: error.name, message: error.message } : undefined;
        if (!accessError && !expected) onError(error);
        // The status has been sent, so the error has the format of a failed run.
        controller.enqueue(encoder.encode(JSON.stringify({ __error__: accessError ?? expected ?? FAILED })));
        controller.close();
      }
    },
    cancel: () => client.abort(new Error("The client closed the connection.")),
  });
  return new Response(body, { headers: allHeaders });
}

/**
 * Sends a JSON array in pages, which contain comma-separated JSON items. Only the first page can fail with an error status. Each
 * page is fetched after the client has received the previous one, so the response uses the memory of one page.
 *
 * @param pages yields all pages except the last, which it returns
 * @param onBreak called when a later page fails, which closes the connection
 */
export async function jsonArrayResponse(
  pages: AsyncGenerator<Uint8Array, Uint8Array>,
  onBreak: (error: unknown) => void,
): Promise<Response> {
  const first = await pages.next();
  const body = first.done
    ? Buffer.concat([OPEN, first.value, CLOSE])
    : ReadableStream.from(arrayChunks(first.value, pages, onBreak));
  return new Response(body, { headers: { "content-type": "application/json" } });
}

const [OPEN, COMMA, CLOSE] = ["[", ",", "]"].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

async function* arrayChunks(
  first: Uint8Array,
  pages: AsyncGenerator<Uint8Array, Uint8Array>,
  onBreak: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  yield OPEN;
  yield first;
  try {
    for (let done = false; !done; ) {
      const page = await pages.next();
      done = page.done === true;
      if (page.value.length > 0) yield* [COMMA, page.value];
    }
  } catch (error) {
    onBreak(error);
    throw error;
  }
  yield CLOSE;
}
