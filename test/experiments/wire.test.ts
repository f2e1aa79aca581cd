import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonPieces } from "../../src/experiments/json-pieces.ts";
import type { RecordSerializer } from "../../src/experiments/serialization/record-serializer.ts";
import { EXAMPLE_SERIALIZER, FEEDBACK_SERIALIZER } from "../../src/experiments/serialization/records.ts";
import { RUN_SERIALIZER } from "../../src/experiments/serialization/run-records.ts";
import { isoOfMicroseconds } from "../../src/platform/lib/times.ts";
import { AsyncQueue } from "../../src/platform/lib/worker-rpc.ts";

const text = fc.string({ unit: "binary", maxLength: 20 }).map((some) => some.toWellFormed());
const payload = fc.dictionary(text, fc.jsonValue()).map((value) => JSON.stringify(value));
const json = fc.jsonValue().map((value) => JSON.stringify(value));
const orNull = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: null });
const cut = fc.oneof(
  text,
  text.map((some) => `${some}…`),
  fc.constantFrom("…", 'é"…', "a…b…"),
);
const us = fc.integer({ min: -62_135_596_800_000_000, max: 8_000_000_000_000_000 });

const feedback = fc.record({
  feedback_id: fc.uuid(),
  run_id: orNull(fc.uuid()),
  key: fc.oneof(text, fc.constantFrom("__proto__", "constructor", "1")),
  score: orNull(fc.double({ noNaN: true, noDefaultInfinity: true })),
  value: orNull(json),
  comment: orNull(text),
  correction: orNull(json),
  source: orNull(fc.constantFrom('{"type":"api","metadata":null}', '{"type":"a\\"b"}')),
  extra: orNull(payload),
  feedback_group_id: orNull(fc.uuid()),
  comparative_experiment_id: orNull(fc.uuid()),
  is_error: fc.constantFrom(0, 1),
  created_us: us,
  modified_us: us,
  example_index: fc.constant(0),
  repetition: fc.constant(0),
});

const run = fc.record({
  run_id: fc.uuid(),
  tenant_id: text,
  experiment_id: fc.uuid(),
  dataset_id: orNull(fc.uuid()),
  example_id: orNull(fc.uuid()),
  share_token: orNull(fc.uuid()),
  name: text,
  start_us: us,
  end_us: us,
  error: orNull(text),
  metadata: orNull(payload),
  inputs: fc.option(payload),
  outputs: fc.option(payload),
  inputs_preview: cut,
  outputs_preview: orNull(cut),
});

const example = fc.record({
  example_id: fc.uuid(),
  example_index: fc.nat(),
  inputs: payload,
  outputs: orNull(payload),
  metadata: orNull(payload),
  splits: fc.constantFrom("[]", '["test"]'),
  source_run_id: orNull(fc.uuid()),
  created_at: fc.nat(),
  version_at: fc.nat(),
});

describe("a record that is written", () => {
  const target = { experiment_id: "e", run_id: null, run_start_us: null, trace_id: null };
  const cases: [string, RecordSerializer<never, object>, fc.Arbitrary<unknown>][] = [
    ["run", RUN_SERIALIZER as never, fc.record({ run, feedback: fc.array(feedback, { maxLength: 4 }) })],
    ["feedback", FEEDBACK_SERIALIZER as never, feedback.map((row) => ({ row, target }))],
    ["example", EXAMPLE_SERIALIZER as never, fc.record({ example, dataset_id: fc.uuid() })],
  ];

  it.each(cases)("is the same as its value: %s", (_, serializer, rows) => {
    fc.assert(
      fc.property(rows, (row) => {
        // Parsed and written again: … may stand there as an escape.
        const written = JSON.stringify(JSON.parse(serializer.toJson(row as never)));
        expect(written).toBe(JSON.stringify(serializer.toObject(row as never)));
      }),
    );
  });
});

describe("a time that is written", () => {
  it("is that of Date, with microseconds where there are some", () => {
    fc.assert(
      fc.property(us, (at) => {
        const ms = Math.floor(at / 1000);
        const rest = at === ms * 1000 ? "" : String(at - ms * 1000).padStart(3, "0");
        expect(isoOfMicroseconds(at)).toBe(`${new Date(ms).toISOString().slice(0, -1)}${rest}+00:00`);
      }),
    );
  });
});

describe("a list in pieces", () => {
  it("is complete when the pieces are joined, whatever their number", () => {
    for (const [count, max_pieces] of [
      [0, 1],
      [1, 1],
      [3, 1],
      [300, 5],
    ] as const) {
      const pieces = [...new JsonPieces(count, (index) => JSON.stringify({ index, text: "x".repeat(1000) }))];
      expect(JSON.parse(pieces.join(""))).toMatchObject(Array.from({ length: count }, (_, index) => ({ index })));
      expect(pieces).toHaveLength(max_pieces);
    }
  });

  it("arrives in order, whichever side is faster, and ends with an error that occurs on the way", async () => {
    const queue = new AsyncQueue<string>();
    const read: string[] = [];
    const reading = (async () => {
      for await (const piece of queue) {
        read.push(piece);
        if (piece === "b") queue.push("c");
        if (piece === "c") queue.end(new Error("the thread is gone"));
      }
    })();
    queue.push("a");
    queue.push("b");
    await expect(reading).rejects.toThrow("the thread is gone");
    expect(read).toEqual(["a", "b", "c"]);
  });
});
