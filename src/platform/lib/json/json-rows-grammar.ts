/** A place between values of a {@link JsonRows} document: which byte may come there, and where it leads. */
interface Rule {
  /** For "expected …". */
  wants: string;
  /** "value": the byte begins a key, a member or a row, and belongs to it. */
  next: Record<string, Place | "value">;
}

export type Place =
  | "start"
  | "mark 2"
  | "mark 3"
  | "document"
  | "first key"
  | "key"
  | "after key"
  | "member"
  | "after member"
  | "first row"
  | "row"
  | "after row"
  | "end";

/** What a member or a row may begin with. */
const VALUE = Object.fromEntries([...'{["-0123456789tfn'].map((char) => [char, "value" as const]));

/** Bytes are given as the characters of the same number; space is skipped before. The marks are the byte order mark's. */
export const GRAMMAR: Record<Place, Rule> = {
  start: { wants: "an object", next: { "{": "first key", "\xef": "mark 2" } },
  "mark 2": { wants: "an object", next: { "\xbb": "mark 3" } },
  "mark 3": { wants: "an object", next: { "\xbf": "document" } },
  document: { wants: "an object", next: { "{": "first key" } },
  "first key": { wants: 'a key in " or a }', next: { '"': "value", "}": "end" } },
  key: { wants: 'a key in "', next: { '"': "value" } },
  "after key": { wants: "a :", next: { ":": "member" } },
  member: { wants: "a value", next: VALUE },
  "after member": { wants: "a , or a }", next: { ",": "key", "}": "end" } },
  "first row": { wants: "a value or a ]", next: { ...VALUE, "]": "after member" } },
  row: { wants: "a value", next: VALUE },
  "after row": { wants: "a , or a ]", next: { ",": "row", "]": "after member" } },
  end: { wants: "nothing more", next: {} },
};

/** Whether a value that begins here is a row. */
export const isRow = (place: Place): boolean => place === "first row" || place === "row";
