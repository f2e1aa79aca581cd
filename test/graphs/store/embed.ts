const WORDS = ["cat", "dog", "car"];

/** How often each word is in a text. */
export function embed(texts: string[]): number[][] {
  return texts.map((text) => {
    if (text.includes("explode")) throw new RangeError("the model is not available");
    if (text.includes("short")) return [1];
    return WORDS.map((word) => text.split(word).length - 1);
  });
}

export const embeddings = {
  embedDocuments: async (texts: string[]) => embed(texts),
  embedQuery: async (text: string) => embed([text])[0],
};
