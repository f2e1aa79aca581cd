const DIMENSIONS = 384;

/** Pseudorandom vectors that depend only on the text. */
export const embed = (texts: string[]): number[][] =>
  texts.map((text) => {
    let seed = 1;
    for (let i = 0; i < text.length; i++) seed = (Math.imul(seed, 31) + text.charCodeAt(i)) >>> 0;
    return Array.from({ length: DIMENSIONS }, () => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed / 2 ** 31 - 1;
    });
  });
