import { v5, v7 } from "uuid";

/** A new, time-ordered id (UUID version 7): rows made together lie together in the index. */
export const newId = (): string => v7();

/** The id that a name always has within a namespace (UUID version 5). */
export const idOfName = (name: string, namespace: string): string => v5(name, namespace);

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether `text` has the form of a UUID, of any version. */
export const isUuid = (text: string): boolean => UUID.test(text);
