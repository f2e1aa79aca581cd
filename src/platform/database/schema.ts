/**
 * The tables of all products by name, with their rows as both databases hold them. Each product adds its own (`storage/schema.ts`). Times
 * are milliseconds since the epoch in 64-bit integers; JSON is text, so that what was written is read back to the byte; flags are 0 or 1.
 */
// biome-ignore lint/suspicious/noEmptyInterface: products add their tables to it
export interface Schema {}
