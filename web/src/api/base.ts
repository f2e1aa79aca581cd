/** Where the pages are, with a slash at the end: the server writes it into this element, below whatever prefix it is mounted. */
export const APP_PATH = document.querySelector<HTMLMetaElement>("meta[name=threadmill-path]")?.content ?? "/app/";

/** Where the APIs are, without a slash at the end; empty at the root of the host. */
export const API_PATH = APP_PATH.replace(/\/app\/$/, "");

/** What commands and other programs are told: the same, with the host. */
export const API_URL = `${location.origin}${API_PATH}`;
