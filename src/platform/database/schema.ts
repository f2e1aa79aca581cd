/**
 * The tables of all products by name, with their rows as both databases store them. Each product adds its own (`storage/schema.ts`).
 * Times are milliseconds since the epoch in 64-bit integers; JSON is text, so that it is read back byte for byte; flags are 0 or 1.
 */
// biome-ignore lint/suspicious/noEmptyInterface: products add their tables to it
export interface Schema {}
