/**
 * How much room a column of the matrix has, so that five experiments by eight keys are on a screen of 1280 pixels: in a `wide` one
 * everything is said, a `medium` one leaves out who stayed the same, and a `narrow` one has signs for words and `.03` for `0.03`.
 */
export type Room = "wide" | "medium" | "narrow";

/** @param columns how many experiments are side by side, the baseline among them */
export const roomOf = (columns: number): Room => (columns <= 2 ? "wide" : columns === 3 ? "medium" : "narrow");
