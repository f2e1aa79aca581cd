import { accessEndError, type ClientAbort } from "./client-abort.ts";

const encoder = new TextEncoder();

/** A text that arrives within this time is sent as an ordinary response with its length. */
const IMMEDIATE_MS = 1_000;
/** White space before JSON is not part of the document, but it keeps the connection alive. */
const KEEP_ALIVE_MS = 5_000;

const FAILED = {
  error: "ServiceError",
  message: "The service could not wait for the run. Join the run to get its result.",
};

/**
 * A JSON response whose text may take long. After one second the status and headers are sent, then a line break every five seconds,
 * and finally the text.
 *
 * @param client aborted when the client closes the connection
 */
export async function keepAliveResponse(
  text: Promise<string>,
  headers: Record<string, string>,
  client: ClientAbort,
  onError: (error: unknown) => void,
): Promise<Response> {
  const unwatch = client.watchAccess();
  void text.then(unwatch, unwatch);
  const allHeaders = { "content-type": "application/json", ...headers };
  const immediate = await within(text, IMMEDIATE_MS);
  if (immediate !== undefined) return new Response(immediate, { headers: allHeaders });
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const done = await within(text, KEEP_ALIVE_MS);
        controller.enqueue(encoder.encode(done ?? "\n"));
        if (done !== undefined) controller.close();
      } catch (error) {
        const accessError = accessEndError(client);
        if (client.signal.aborted && !accessError) return controller.error(error);
        if (!accessError) onError(error);
        // The status is already sent. Clients understand a failure in the format of a failed run.
        controller.enqueue(encoder.encode(JSON.stringify({ __error__: accessError ?? FAILED })));
        controller.close();
      }
    },
    cancel: () => client.abort(new Error("The client closed the connection.")),
  });
  return new Response(body, { headers: allHeaders });
}

async function within(text: Promise<string>, ms: number): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([text, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A JSON array that is fetched in pages. A page is JSON items with commas between them; the generator returns the last page. The
 * first page decides the status. Each further page is fetched after the client has received the one before, so a long response
 * occupies the memory of one page.
 *
 * @param onBreak called when a later page fails; the client sees the connection close
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
