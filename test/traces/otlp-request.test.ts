import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { JsonTraceSerializer, ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { otlpErrorBody } from "../../src/experiments/contract/traces/otlp-status.ts";
import { otlpResponse, readOtlpRequest } from "../../src/experiments/traces/otlp/otlp-request.ts";
import { toTraceChanges } from "../../src/experiments/traces/otlp/otlp-runs.ts";
import { OtlpError } from "../../src/experiments/traces/otlp/wire-fields.ts";

const PROTOBUF = "application/x-protobuf";
const JSON_TYPE = "application/json";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const ROOT = "00f067aa0ba902b7";
const NS = "1769860800123456789";

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

const valid = { traceId: TRACE, spanId: ROOT, name: "work", startTimeUnixNano: NS, endTimeUnixNano: NS };

const body = (...spans: object[]) => ({ resourceSpans: [{ scopeSpans: [{ spans }] }] });

const readSpans = (...spans: object[]) => readOtlpRequest(encode(body(...spans)), JSON_TYPE);

const attribute = (value: unknown) =>
  readSpans({ ...valid, attributes: [{ key: "a", value }] })[0]?.attributes.get("a");

/** The body of one span with one attribute, whose AnyValue is given. */
function protobufOf(value: Uint8Array): Uint8Array {
  const inside = (field: number, bytes: Uint8Array) => new BinaryWriter().tag(field, 2).bytes(bytes).finish();
  const id = (hex: string) => Buffer.from(hex, "hex");
  const span = new BinaryWriter()
    .tag(1, WireType.LengthDelimited)
    .bytes(id(TRACE))
    .tag(2, WireType.LengthDelimited)
    .bytes(id(ROOT))
    .tag(5, WireType.LengthDelimited)
    .string("work")
    .tag(7, WireType.Bit64)
    .fixed64(NS)
    .tag(9, WireType.LengthDelimited)
    .bytes(Buffer.concat([new BinaryWriter().tag(1, 2).string("a").finish(), inside(2, value)]))
    .finish();
  return inside(1, inside(2, inside(2, span)));
}

const valueOfProtobuf = (value: Uint8Array) => readOtlpRequest(protobufOf(value), PROTOBUF)[0]?.attributes.get("a");

function nestedProtobuf(levels: number): Uint8Array {
  let bytes = new BinaryWriter().tag(1, 2).string("x").finish();
  for (let level = 1; level < levels; level++) {
    bytes = new BinaryWriter().tag(5, 2).fork().tag(1, 2).bytes(bytes).join().finish();
  }
  return bytes;
}

function nestedJson(levels: number, isList: boolean): object {
  let value: object = { stringValue: "x" };
  for (let level = 1; level < levels; level++) {
    value = isList ? { arrayValue: { values: [value] } } : { kvlistValue: { values: [{ key: "k", value }] } };
  }
  return value;
}

const refusal = (read: () => unknown): string => {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(OtlpError);
    return (error as OtlpError).message;
  }
  throw new Error("was not refused");
};

describe("OTLP/JSON", () => {
  it("reads integers as texts and numbers, enums as names and numbers, ids in any case", () => {
    for (const [time, code, id] of [
      [NS, "STATUS_CODE_ERROR", TRACE.toUpperCase()],
      [Number(NS), 2, TRACE],
    ]) {
      const [span] = readSpans({ ...valid, traceId: id, startTimeUnixNano: time, status: { code, message: null } });
      expect(span).toMatchObject({ trace_id: TRACE, start_time: 1769860800123456, status: { code: 2, message: "" } });
    }
  });

  it.each([
    [{ intValue: "12" }, 12],
    [{ intValue: 12 }, 12],
    [{ intValue: "-9223372036854775808" }, "-9223372036854775808"],
    [{ doubleValue: 1.5 }, 1.5],
    [{ doubleValue: "1.5" }, 1.5],
    [{ doubleValue: "NaN" }, null],
    [{ doubleValue: "-Infinity" }, null],
    [{ boolValue: false }, false],
    [{ bytesValue: "AAE=" }, "AAE="],
    [{ stringValue: "a\0b" }, "a\ufffdb"],
    [{ arrayValue: {} }, []],
    [{ kvlistValue: { values: [{ key: "k", value: { intValue: 1 } }] } }, { k: 1 }],
    [{}, null],
    [null, null],
  ])("reads the value %j as %j", (value, expected) => {
    expect(attribute(value)).toEqual(expected);
  });

  it("reads more attributes than levels are allowed", () => {
    const attributes = Array.from({ length: 300 }, (_, n) => ({ key: `a${n}`, value: { intValue: n } }));
    expect(readSpans({ ...valid, attributes })[0]?.attributes.size).toBe(300);
  });

  it("ignores unknown fields", () => {
    expect(readSpans({ ...valid, later: { a: [1] }, flags: 257 })).toHaveLength(1);
  });

  it.each([
    [[], "The body must be an object, not []."],
    [{ resourceSpans: {} }, "resourceSpans must be an array, not {}."],
    [body(7 as never), "spans must be an object, not 7."],
    [body({ ...valid, traceId: 7 }), "traceId must be a string, not 7."],
    [body({ ...valid, name: 7 }), "name must be a string, not 7."],
    [body({ ...valid, startTimeUnixNano: "soon" }), 'startTimeUnixNano must be an integer, not "soon".'],
    [body({ ...valid, startTimeUnixNano: 1.5 }), "startTimeUnixNano must be an integer, not 1.5."],
    [body({ ...valid, startTimeUnixNano: "9".repeat(30) }), /^startTimeUnixNano must be an integer/],
    [body({ ...valid, startTimeUnixNano: 1e300 }), /^startTimeUnixNano must be an integer/],
    [body({ ...valid, status: { code: "FINE" } }), /^code must be one of STATUS_CODE_UNSET, .*, not "FINE"\.$/],
    [body({ ...valid, attributes: { a: 1 } }), 'attributes must be an array, not {"a":1}.'],
    [body({ ...valid, attributes: [{ key: "a", value: 1 }] }), "value must be an object, not 1."],
    [
      body({ ...valid, attributes: [{ key: "a", value: { intValue: true } }] }),
      "intValue must be an integer, not true.",
    ],
    [body({ ...valid, attributes: [{ key: "a", value: { doubleValue: "x" } }] }), /^doubleValue must be a number/],
    [body({ ...valid, attributes: [{ key: "a", value: { boolValue: 1 } }] }), "boolValue must be a boolean, not 1."],
  ])("refuses %j", (value, expected) => {
    expect(refusal(() => readOtlpRequest(encode(value), JSON_TYPE))).toMatch(expected);
  });

  it.each(["", "{", "[1,]", '{"__proto__":{}}', "[".repeat(1_000_000), '{"a":'.repeat(100_000)])(
    "refuses the text %.20s",
    (text) => {
      expect(refusal(() => readOtlpRequest(new TextEncoder().encode(text), JSON_TYPE))).toMatch(/^The body /);
    },
  );

  it("refuses other content types", () => {
    const message = 'The content type must be application/x-protobuf or application/json, not "text/plain".';
    expect(() => readOtlpRequest(encode({}), "text/plain")).toThrow(
      expect.objectContaining({ constructor: OtlpError, status: 415, message }),
    );
    expect(() => readOtlpRequest(encode([]), JSON_TYPE)).toThrow(expect.objectContaining({ status: 400 }));
  });
});

describe("protobuf", () => {
  const example = protobufOf(new BinaryWriter().tag(1, 2).string("x").finish());

  it("reads an empty request", () => {
    expect(readOtlpRequest(new Uint8Array(), PROTOBUF)).toEqual([]);
  });

  it.each([
    [new BinaryWriter().tag(3, 0).int64(-5n), -5],
    [new BinaryWriter().tag(3, 0).int64(2n ** 53n + 1n), "9007199254740993"],
    [new BinaryWriter().tag(3, 0).int64(-(2n ** 63n)), "-9223372036854775808"],
    [new BinaryWriter().tag(4, 1).double(Number.NaN), null],
    [new BinaryWriter().tag(7, 2).bytes(new Uint8Array([0, 1])), "AAE="],
    [new BinaryWriter().tag(1, 2).string("a\0b"), "a\ufffdb"],
    [new BinaryWriter().tag(1, 2).bytes(new Uint8Array([0xff])), "\ufffd"],
    [new BinaryWriter().tag(99, 2).string("later"), null],
    [new BinaryWriter(), null],
  ])("reads value %#", (writer, expected) => {
    expect(valueOfProtobuf(writer.finish())).toEqual(expected);
  });

  it("refuses cut bytes at every length", () => {
    for (let length = 1; length < example.length; length++) {
      refusal(() => readOtlpRequest(example.subarray(0, length), PROTOBUF));
    }
  });

  it("refuses a field that is longer than its message", () => {
    expect(refusal(() => valueOfProtobuf(new Uint8Array([0x0a, 0x7f])))).toMatch(/./);
    const long = new Uint8Array([0x0a, 0x02, 0x0a, 0x05, 0x12, 0x03, 0, 0, 0]);
    expect(refusal(() => readOtlpRequest(long, PROTOBUF))).toBe(
      "A field is longer than the protobuf message that contains it.",
    );
  });

  it("refuses wrong wire types and deep groups", () => {
    expect(refusal(() => valueOfProtobuf(new BinaryWriter().tag(1, 0).int32(1).finish()))).toBe(
      "The field string_value has the unsupported wire type 0.",
    );
    expect(refusal(() => readOtlpRequest(new Uint8Array(1_000_000).fill(0x5b), PROTOBUF))).toMatch(/recursion depth/);
  });

  it("refuses more messages than fit the memory", () => {
    const empty = new Uint8Array(2_100_000).map((_, index) => (index % 2 === 0 ? 0x0a : 0));
    expect(refusal(() => readOtlpRequest(empty, PROTOBUF))).toBe(
      "The request has more than 1000000 protobuf messages or JSON objects: send fewer spans per request.",
    );
  });

  it("rejects random bytes only with an OtlpError", () => {
    const change = fc.array(fc.tuple(fc.nat(example.length - 1), fc.nat(255)), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(change, (changes) => {
        const bytes = example.slice();
        for (const [index, byte] of changes) bytes[index] = byte;
        try {
          toTraceChanges(readOtlpRequest(bytes, PROTOBUF), {});
        } catch (error) {
          if (!(error instanceof OtlpError)) throw error;
        }
      }),
      { numRuns: 3000 },
    );
  });
});

describe("nesting", () => {
  it("of 100 values is read, and of 101 refused", () => {
    const reads = (levels: number) => [
      () => valueOfProtobuf(nestedProtobuf(levels)),
      () => attribute(nestedJson(levels, true)),
      () => attribute(nestedJson(levels, false)),
    ];
    for (const read of reads(100)) expect(JSON.stringify(read())).toContain('"x"');
    for (const read of reads(101)) expect(refusal(read)).toMatch(/nested (more than )?\d+ levels deep/);
    expect(refusal(() => valueOfProtobuf(nestedProtobuf(5_000)))).toMatch(/nested more than 100 levels/);
  });
});

describe("hostile spans", () => {
  const ingest = (...spans: object[]) => toTraceChanges(readSpans(...spans), {});

  it.each([
    [{ traceId: "0".repeat(32) }, "has no valid trace ID"],
    [{ traceId: TRACE.slice(1) }, "has no valid trace ID"],
    [{ traceId: undefined }, "has no valid trace ID"],
    [{ spanId: "0".repeat(16) }, "has no valid span ID"],
    [{ spanId: "x".repeat(16) }, "has no valid span ID"],
    [{ parentSpanId: "12" }, "has no valid parent span ID"],
    [{ name: "" }, "has no name"],
    [{ startTimeUnixNano: 0 }, "has no valid start time"],
    [{ startTimeUnixNano: -5 }, "has no valid start time"],
    [{ startTimeUnixNano: "18446744073709551615" }, "has no valid start time"],
    [{ endTimeUnixNano: "18446744073709551615" }, "has no valid end time"],
  ])("%j is rejected, and the other spans are stored", (wrong, reason) => {
    const { changes, rejected } = ingest({ ...valid, ...wrong }, valid);
    expect(changes.operations).toHaveLength(1);
    expect(rejected.count).toBe(1);
    expect(rejected.message).toContain(reason);
  });

  it("names the first of many rejected spans", () => {
    const { rejected } = ingest(...Array.from({ length: 1000 }, () => ({ ...valid, spanId: "x".repeat(1000) })));
    expect(rejected.count).toBe(1000);
    expect(rejected.message).toMatch(/; and 995 more\.$/);
    expect(rejected.message.length).toBeLessThan(500);
  });

  it("treats zeros as no parent, and a missing end as pending", () => {
    const { changes } = ingest({ ...valid, parentSpanId: "0".repeat(16), endTimeUnixNano: "0" });
    expect(changes.operations[0]?.fields).not.toHaveProperty("parent_run_id");
    expect(changes.operations[0]?.fields).not.toHaveProperty("end_time");
  });

  it("places spans that are their own parents, circles, and chains of any length", () => {
    const id = (n: number) => n.toString(16).padStart(16, "0");
    const span = (n: number, parent: number) => ({ ...valid, spanId: id(n), parentSpanId: id(parent) });
    expect(ingest(span(1, 1)).changes.operations[0]?.fields).not.toHaveProperty("parent_run_id");
    const circle = ingest(span(1, 2), span(2, 1)).changes.operations;
    for (const { fields } of circle) expect(fields).not.toHaveProperty("dotted_order");
    const chain = ingest(...Array.from({ length: 20_000 }, (_, n) => span(20_000 - n, 19_999 - n))).changes.operations;
    const orders = chain.map(({ fields }) => fields.dotted_order?.length ?? 0);
    expect(Math.max(...orders)).toBeLessThanOrEqual(20_000);
    expect(orders.filter((length) => length > 0).length).toBeGreaterThan(300);
    expect(chain.filter(({ fields }) => fields.parent_run_id === undefined)).toHaveLength(1);
  });

  it("changes no prototype, and makes no list of the highest number", () => {
    const names = [
      "__proto__",
      "langsmith.metadata.__proto__",
      "gen_ai.prompt.0.__proto__.polluted",
      "gen_ai.prompt.999999999.content",
      "gen_ai.prompt.99999999999999999999.content",
      `gen_ai.prompt.0.${"a.".repeat(5000)}b`,
      "gen_ai.prompt.0",
      "gen_ai.prompt.x.content",
      "metadata.constructor.prototype",
    ];
    const value = { kvlistValue: { values: [{ key: "polluted", value: { intValue: 1 } }] } };
    const attributes = names.map((key) => ({ key, value }));
    const events = [{ name: "e", attributes }];
    const [run] = ingest({ ...valid, attributes, events }).changes.operations;
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(run?.fields.inputs?.messages).toHaveLength(2);
    expect(Object.getPrototypeOf(run?.fields.extra?.metadata)).toBe(Object.prototype);
    expect(Object.keys(run?.fields.events?.[0]?.kwargs ?? {})).not.toContain("__proto__");
    expect(structuredClone(run)).toEqual(run);
  });

  it("keeps attributes of unexpected types in the metadata", () => {
    const names = ["langsmith.span.kind", "gen_ai.request.model", "gen_ai.input.messages", "langsmith.attachments"];
    const attributes = names.map((key) => ({ key, value: { intValue: 7 } }));
    const [run] = ingest({ ...valid, attributes }).changes.operations;
    expect(run?.fields.run_type).toBe("chain");
    expect(run?.fields.extra?.metadata).toMatchObject(Object.fromEntries(names.map((name) => [name, 7])));
  });
});

describe("responses", () => {
  it.each([
    [PROTOBUF, ProtobufTraceSerializer],
    [`${JSON_TYPE}; charset=utf-8`, JsonTraceSerializer],
  ] as const)("%s can be read by the official exporter", (type, serializer) => {
    const partial = serializer.deserializeResponse(otlpResponse(type, { count: 3, message: "Three." }));
    expect(Number(partial.partialSuccess?.rejectedSpans)).toBe(3);
    expect(partial.partialSuccess?.errorMessage).toBe("Three.");
    const success = serializer.deserializeResponse(otlpResponse(type, { count: 0, message: "" }));
    expect(Number(success.partialSuccess?.rejectedSpans ?? 0)).toBe(0);
  });

  it("are empty in JSON when every span was stored", () => {
    expect(Buffer.from(otlpResponse(JSON_TYPE, { count: 0, message: "" })).toString()).toBe('{"partialSuccess":{}}');
  });

  it("of errors are a google.rpc.Status or a detail", () => {
    const reader = new BinaryReader(otlpErrorBody(PROTOBUF, 400, "Wrong."));
    expect([reader.tag(), reader.int32(), reader.tag(), reader.string()]).toEqual([[1, 0], 3, [2, 2], "Wrong."]);
    expect(Buffer.from(otlpErrorBody(JSON_TYPE, 400, "Wrong.")).toString()).toBe('{"detail":"Wrong."}');
  });
});
