import { expect, it } from "vitest";
import { checkRows, guessUses, readResultFile } from "./result-file.ts";

it("keeps scores and inputs apart whose names differ only before the last dot", async () => {
  const csv = "question.text,context.text,faithfulness.score,relevancy.score\nQ,C,0.9,0.1\n";
  const file = await readResultFile(new File([csv], "results.csv"));
  const { rows, problems } = checkRows(file, guessUses(file), 10);
  expect(problems).toEqual([]);
  expect(rows).toMatchObject([
    {
      inputs: { "question.text": "Q", "context.text": "C" },
      evaluation_scores: [
        { key: "faithfulness.score", score: 0.9 },
        { key: "relevancy.score", score: 0.1 },
      ],
    },
  ]);
});
