/**
 * The tables by name, with their rows as both databases store them. Each product adds its tables (`storage/schema.ts`). Times are
 * milliseconds since the epoch; JSON is text, so that it is read back byte for byte; flags are 0 or 1.
 */
// biome-ignore lint/suspicious/noEmptyInterface: products add their tables to it
export interface Schema {}
