/**
 * Text of others as a terminal gets it: what would move the cursor, set a title, write to the clipboard or turn the order of letters is
 * shown as its code instead. In JSON the codes are escapes of the same characters.
 */
export const printable = (text: string): string =>
  text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
