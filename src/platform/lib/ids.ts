import { v5, v7 } from "uuid";

/** Returns a time-ordered ID (UUID version 7): rows created together are adjacent in the index. */
export const newId = (): string => v7();

/** Returns the ID that a name always has in a namespace (UUID version 5). */
export const idOfName = (name: string, namespace: string): string => v5(name, namespace);

/** Returns the ID of the run that stores a span, whose ID is 8 bytes in hexadecimal. LangSmith's clients compute the same ID. */
export const runIdOfSpan = (span_id: string): string => `00000000-0000-0000-${span_id.slice(0, 4)}-${span_id.slice(4)}`;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a text has the format of a UUID, of any version. */
export const isUuid = (text: string): boolean => UUID.test(text);
