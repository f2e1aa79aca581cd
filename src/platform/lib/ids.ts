import { v5, v7 } from "uuid";

/** Returns a time-ordered ID (UUID version 7): rows created together are adjacent in the index. */
export const newId = (): string => v7();

/** Returns the ID that a name always has in a namespace (UUID version 5). */
export const idOfName = (name: string, namespace: string): string => v5(name, namespace);

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a text has the format of a UUID, of any version. */
export const isUuid = (text: string): boolean => UUID.test(text);
