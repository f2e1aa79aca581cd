import { API_URL } from "../../api/base.ts";

/**
 * What uploads a file of any format that the command line knows.
 *
 * @param name of the file
 */
export const uploadCommand = (name: string): string =>
  `npx threadmill experiments upload ${quoted(name)} --dataset NAME --url ${API_URL}`;

/** As a shell takes it for one word. */
const quoted = (word: string): string => (/^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
