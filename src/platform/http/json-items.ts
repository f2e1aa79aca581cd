/**
 * A JSON array whose items come in pages: JSON texts with commas between them. The generator returns the last page. The first one
 * decides about the status, each next one is fetched when the client has taken the one before: a long answer costs one page of memory.
 *
 * @param onBreak a later page failed: the client sees the connection end
 */
export async function jsonItems(
  pages: AsyncGenerator<Uint8Array, Uint8Array>,
  onBreak: (error: unknown) => void,
): Promise<Response> {
  const first = await pages.next();
  const body = first.done
    ? Buffer.concat([OPEN, first.value, CLOSE])
    : ReadableStream.from(array(first, pages, onBreak));
  return new Response(body, { headers: { "content-type": "application/json" } });
}

const [OPEN, COMMA, CLOSE] = ["[", ",", "]"].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

async function* array(
  first: IteratorResult<Uint8Array, Uint8Array>,
  pages: AsyncGenerator<Uint8Array, Uint8Array>,
  onBreak: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  yield OPEN;
  yield first.value;
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
