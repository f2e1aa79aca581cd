import { expect, it } from "vitest";
import { joined, listOf } from "./search.ts";

it.each([[[]], [["latency"]], [["score:exact_match,strict-match", "50%2C", "score:a"]]])(
  "lists of columns are the same after they were in a URL: %j",
  (list) => {
    expect(listOf(joined(list))).toEqual(list);
  },
);
