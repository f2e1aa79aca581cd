import * as ls from "langsmith/vitest";
import { expect } from "vitest";

/** Tests as users of the client's integration write them; one of them fails. */
ls.describe(process.env.SUITE_NAME as string, () => {
  ls.test("sums", { inputs: { a: 1, b: 2 }, referenceOutputs: { sum: 3 } }, async ({ inputs, referenceOutputs }) => {
    const sum = inputs.a + inputs.b;
    ls.logOutputs({ sum });
    ls.logFeedback({ key: "exact", score: sum === referenceOutputs?.sum });
    const judge = ls.wrapEvaluator(() => ({ key: "judged", score: 0.5, comment: "so so" }));
    await judge({ outputs: { sum } });
  });

  ls.test.each([{ inputs: { n: 1 } }, { inputs: { n: 2 } }])("compares", async ({ inputs }) => {
    ls.logOutputs({ n: inputs.n });
    expect(inputs.n).toBe(1);
  });
});
