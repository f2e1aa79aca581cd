/** Text and title of the pages that a user's browser comes to at the end. */
const PAGES = {
  connected: ["Connected", "You can close this window."],
  failed: ["Not connected", "The provider gave no access. Close this window and start again."],
  refused: ["Not connected", ""],
} as const satisfies Record<string, readonly [title: string, text: string]>;

/**
 * Sends a browser on, away from an address that has a code in it.
 *
 * @param done where the page of {@link donePage} is, relative to the path that was asked for: proxies may know it by another name
 */
export const sendOn = (done: string, status: "connected" | "failed", provider_id: string): Response =>
  new Response(null, {
    status: 302,
    headers: { location: `${done}?${new URLSearchParams({ status, provider: provider_id })}`, ...PRIVATE },
  });

/** What anybody could write into the address of the page is shown only if it looks like a provider's name. */
const NAME = /^[\w.-]{1,64}$/;

export function donePage(status: string | undefined, provider: string | undefined): Response {
  const isKnown = status === "connected" || status === "failed";
  const [title, text] = PAGES[isKnown ? status : "failed"];
  return page(200, provider && NAME.test(provider) ? `${title}: ${provider}` : title, text);
}

/** @param sentence one of errors.ts, with nothing of the request in it */
export const refusedPage = (status: number, sentence: string): Response => page(status, PAGES.refused[0], sentence);

/** A page without scripts, which loads nothing and passes its address on to nobody. */
function page(status: number, title: string, text: string): Response {
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { display: grid; place-content: center; min-height: 90vh; margin: 0 1rem; text-align: center; }
  h1 { font-size: 1.25rem; margin: 0; }
  p { margin: .25rem 0 0; max-width: 32rem; }
</style>
<main><h1>${escaped(title)}</h1><p>${escaped(text)}</p></main>
</html>
`;
  return new Response(html, { status, headers: { "content-type": "text/html; charset=utf-8", ...PRIVATE } });
}

/** Of every answer to a browser that comes with a code, or is sent on from there. */
const PRIVATE = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  "x-content-type-options": "nosniff",
};

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] as string);
