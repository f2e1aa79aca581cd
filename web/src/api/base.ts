/** Where the pages are, with a slash at the end: the server writes it into <base>, below whatever prefix it is mounted. */
export const APP_PATH = new URL(document.baseURI).pathname;

/** Where the APIs are, without a slash at the end; empty at the root of the host. */
export const API_PATH = APP_PATH.replace(/\/app\/$/, "");

/** What commands and other programs are told: the same, with the host. */
export const API_URL = `${location.origin}${API_PATH}`;
