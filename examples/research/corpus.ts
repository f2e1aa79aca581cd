export interface Topic {
  name: string;
  /** A question with one of these words is about this topic. */
  words: string[];
  facts: string[];
}

/** The knowledge of the example: facts about honey bees. */
export const corpus: Topic[] = [
  {
    name: "dance",
    words: ["dance", "find", "talk", "direction"],
    facts: [
      "A waggle dance shows other bees the direction and the distance of food.",
      "The angle of the dance to the vertical is the angle of the food to the sun.",
      "Karl von Frisch decoded the dance and shared a Nobel Prize for it in 1973.",
    ],
  },
  {
    name: "honey",
    words: ["honey", "nectar", "food", "sweet"],
    facts: [
      "Bees make honey from nectar by adding enzymes and fanning the water away.",
      "Honey holds so little water that it hardly spoils.",
      "One worker makes about a twelfth of a teaspoon of honey in her life.",
    ],
  },
  {
    name: "queen",
    words: ["queen", "eggs", "colony", "royal"],
    facts: [
      "A colony usually has one queen.",
      "In spring a queen can lay more than a thousand eggs a day.",
      "A larva fed on royal jelly throughout becomes a queen.",
    ],
  },
  {
    name: "winter",
    words: ["winter", "cold", "warm", "survive"],
    facts: [
      "Honey bees do not hibernate in winter.",
      "They gather in a cluster and shiver their flight muscles to stay warm.",
      "The colony lives on the honey it stored in summer.",
    ],
  },
];

/** The distinct words of a text, in lower case. */
export function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[a-z]+/g));
}
