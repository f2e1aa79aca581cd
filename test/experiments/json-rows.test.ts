import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonError, MAX_DEPTH, parseUntrusted } from "../../src/platform/lib/json/json.ts";
import { JsonRows, type JsonRowsOptions } from "../../src/platform/lib/json/json-rows.ts";
import { GrowingBytes } from "../../src/platform/lib/json/json-value-scanner.ts";
import { chunkings, documentTexts, mutate, mutations } from "./json-texts.ts";

/** What was read, or the message of the error. */
type Outcome = { rest: Record<string, unknown>; rows: unknown[] } | string;

const bytesOf = (document: string | Uint8Array) => (typeof document === "string" ? Buffer.from(document) : document);

/** Reads a document in chunks of the given sizes (over and over), each overwritten after it was pushed. */
function read(document: string | Uint8Array, sizes = [65_536], limits: Partial<JsonRowsOptions> = {}): Outcome {
  const bytes = bytesOf(document);
  const rows: unknown[] = [];
  const onRow = (row: unknown, index: number) => {
    expect(index).toBe(rows.length);
    rows.push(row);
  };
  const reader = new JsonRows({ array: "results", max_row_bytes: 1e8, max_rest_bytes: 1e6, onRow, ...limits });
  try {
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const size = sizes[turn % sizes.length] as number;
      const chunk = new Uint8Array(bytes.subarray(at, at + size));
      reader.push(chunk);
      chunk.fill(0x22);
      at += size;
    }
    return { rest: reader.end(), rows };
  } catch (error) {
    if (error instanceof JsonError) return error.message;
    throw error;
  }
}

/** What must be read: the same document parsed whole, as the body of any other request is. */
function readWhole(document: Uint8Array): Outcome {
  const text = new TextDecoder().decode(document);
  try {
    JSON.parse(text);
    const whole = parseUntrusted(text) as Record<string, unknown>;
    if (typeof whole !== "object" || whole === null || Array.isArray(whole)) return "is not an object";
    const rows = whole.results;
    return Array.isArray(rows) ? { rest: { ...whole, results: true }, rows } : { rest: whole, rows: [] };
  } catch (error) {
    return (error as Error).message;
  }
}

/** Whether a key was refused in a member that another one replaced: a document parsed whole does not show that. */
const isOfReplaced = (found: Outcome) =>
  typeof found === "string" && /^is invalid because member .* has a key that is not allowed: __proto__/s.test(found);

describe("a document with rows", () => {
  it("is accepted, with the same contents, exactly when it would be accepted whole, however it is cut", () => {
    const seen = { accepted: 0, refused: 0, rows: 0 };
    fc.assert(
      fc.property(documentTexts, fc.boolean(), mutations, chunkings, (text, hasMark, changes, sizes) => {
        const document = changes.reduce(mutate, bytesOf(hasMark ? `\ufeff${text}` : text));
        const found = read(document, sizes);
        const wanted = readWhole(document);
        seen[typeof found === "string" ? "refused" : "accepted"]++;
        if (typeof found !== "string") seen.rows += found.rows.length;
        if (typeof found === "string" && typeof wanted === "string") return;
        if (isDeepStrictEqual(found, wanted) || isOfReplaced(found)) return;
        throw new Error(JSON.stringify({ document: Buffer.from(document).toString("latin1"), found, wanted }));
      }),
      { numRuns: 5000 },
    );
    expect(seen.accepted).toBeGreaterThan(1000);
    expect(seen.refused).toBeGreaterThan(1000);
    expect(seen.rows).toBeGreaterThan(1000);
  });

  const DOCUMENT = Buffer.from(
    '\ufeff {"né\\"]":"\\\\", "re\\u0073ults" : [{"a":"}]\\"\\\\","b":[[],{}]} ,-1.5e3,"日😀\\u00e9\\"" , true\n,[]],"n":-0.5}\n',
  );

  it("reads the same when it is cut in two at any byte, and in chunks of any one size", () => {
    const wanted = {
      rest: { 'né"]': "\\", results: true, n: -0.5 },
      rows: [{ a: '}]"\\', b: [[], {}] }, -1500, '日😀é"', true, []],
    };
    for (let size = 1; size <= DOCUMENT.length; size++) {
      expect(read(DOCUMENT, [size, DOCUMENT.length])).toEqual(wanted);
      expect(read(DOCUMENT, [size])).toEqual(wanted);
    }
  });

  it("is not whole before its last bracket", () => {
    const whole = DOCUMENT.length - 1;
    for (let length = 0; length < whole; length++) {
      expect(read(DOCUMENT.subarray(0, length))).toMatch(new RegExp(`^is incomplete: it ends at byte ${length}\\b`));
    }
    expect(read(DOCUMENT.subarray(0, whole))).toHaveProperty("rest.n", -0.5);
  });

  it("gives each row with its last byte, in any order of members", () => {
    const rows: unknown[] = [];
    const onRow = (row: unknown) => rows.push(row);
    const reader = new JsonRows({ array: "results", max_row_bytes: 100, max_rest_bytes: 100, onRow });
    reader.push(Buffer.from('{"results":[{"a":1'));
    expect(rows).toEqual([]);
    reader.push(Buffer.from("}"));
    expect(rows).toEqual([{ a: 1 }]);
    reader.push(Buffer.from(',"x'));
    reader.push(Buffer.from('"'));
    expect(rows).toEqual([{ a: 1 }, "x"]);
    reader.push(Buffer.from('],"name":"n"}'));
    expect(reader.end()).toEqual({ results: true, name: "n" });
  });

  it("distinguishes an array from its absence and from other values", () => {
    expect(read('{"a":1}')).toEqual({ rest: { a: 1 }, rows: [] });
    expect(read('{"results":[]}')).toEqual({ rest: { results: true }, rows: [] });
    expect(read('{"results":{"a":[1]},"x":[{"results":[1]}]}')).toEqual({
      rest: { results: { a: [1] }, x: [{ results: [1] }] },
      rows: [],
    });
    const hasArray = (document: string) => {
      const reader = new JsonRows({ array: "results", max_row_bytes: 9, max_rest_bytes: 99, onRow: () => {} });
      reader.push(Buffer.from(document));
      return reader.hasArray;
    };
    expect(['{"results":true}', '{"results":[]}', '{"other":[]}'].map(hasArray)).toEqual([false, true, false]);
  });

  it("finds the end of keys that end with a backslash", () => {
    const document = '{"a\\\\":"}","b\\\\\\"":1,"results":[{"c\\\\":"]"}]}';
    expect(read(document, [1])).toEqual({ rest: { "a\\": "}", 'b\\"': 1, results: true }, rows: [{ "c\\": "]" }] });
  });

  it("takes the last of members with the same key", () => {
    expect(read('{"a":1,"a":[2],"\\u0061":3,"results":[]}')).toEqual({ rest: { a: 3, results: true }, rows: [] });
  });

  it("replaces invalid UTF-8 and characters that no database can store, as in other bodies", () => {
    const document = Buffer.from('{"k\\u0000":"\xff","results":["\xe6\x97","\\ud800\\u0000"]}', "latin1");
    expect(read(document, [1])).toEqual({
      rest: { "k\ufffd": "\ufffd", results: true },
      rows: ["\ufffd", "\ufffd\ufffd"],
    });
  });

  it("passes on errors that onRow throws", () => {
    const onRow = () => {
      throw new RangeError("too many");
    };
    expect(() => read('{"results":[1]}', [9], { onRow })).toThrow(new RangeError("too many"));
  });
});

const exactly = (message: string | RegExp) =>
  typeof message === "string" ? new RegExp(`^${message.replaceAll(/[^\w\s]/g, "\\$&")}$`) : message;

describe("a document that is refused", () => {
  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

  it.each([
    ["", "is incomplete: it ends at byte 0"],
    ["[1]", "has a syntax error at byte 0: expected an object"],
    [" 7", "has a syntax error at byte 1: expected an object"],
    [" \ufeff{}", "has a syntax error at byte 3: expected an object"],
    ["\ufeff\ufeff{}", "has a syntax error at byte 3: expected an object"],
    ["{}x", "has a syntax error at byte 2: expected the end of the document"],
    ["{'a':1}", 'has a syntax error at byte 1: expected "}" or a key in quotes'],
    ['{"a":1,}', "has a syntax error at byte 7: expected a key in quotes"],
    ['{"a" 1}', 'has a syntax error at byte 5, in member "a": expected ":"'],
    ['{"a":}', 'has a syntax error at byte 5, in member "a": expected a value'],
    ['{"a":1 "b":2}', 'has a syntax error at byte 7: expected "," or "}"'],
    ['{"a":nul,"results":[]}', /^is invalid because member "a" at byte 5 is not valid JSON: Unexpected token/],
    ['{"\\x":1}', /^is invalid because the key at byte 1 is not valid JSON: Bad escaped character at byte 3$/],
    ['{"é":"é\n"}', /^is invalid because member "é" at byte 6 is not valid JSON: .* at byte 9$/],
    ['{"__proto__":1}', /^is invalid because member "__proto__" at byte 13 has a key that is not allowed: __proto__/],
    [
      '{"constructor":{"prototype":1}}',
      /^is invalid because member "constructor" at byte 15 has a key that is not allowed/,
    ],
    [
      '{"a":{"__proto__":1},"a":2}',
      /^is invalid because member "a" at byte 5 has a key that is not allowed: __proto__/,
    ],
    ['{"results":[1],"results":[2]}', 'has a duplicate key "results" at byte 15'],
    ['{"results":1,"re\\u0073ults":[2]}', 'has a duplicate key "results" at byte 13'],
    ['{"results":[,1]}', 'has a syntax error at byte 12, before row 0: expected a value or "]"'],
    ['{"results":[1,]}', "has a syntax error at byte 14, before row 1: expected a value"],
    ['{"results":[1,,2]}', "has a syntax error at byte 14, before row 1: expected a value"],
    ['{"results":[1 2]}', 'has a syntax error at byte 14, after row 0: expected "," or "]"'],
    ['{"results":[{}{}]}', 'has a syntax error at byte 14, after row 0: expected "," or "]"'],
    ['{"results":[{},x{}]}', "has a syntax error at byte 15, before row 1: expected a value"],
    ['{"results":[\ufeff1]}', 'has a syntax error at byte 12, before row 0: expected a value or "]"'],
    ['{"results":[1}', 'has a syntax error at byte 13, after row 0: expected "," or "]"'],
    [
      '{"results":[{"a":1},{"é":"x\ty"}]}',
      /^is invalid because row 1 at byte 20 is not valid JSON: Bad .* at byte 28$/,
    ],
    ['{"results":[{},[}]]}', /^is invalid because row 1 at byte 15 is not valid JSON: Unexpected token/],
    ['{"results":[{},{"a":1', "is incomplete: it ends at byte 21, inside row 1"],
    ['{"results":[{},', "is incomplete: it ends at byte 15, before row 1"],
    ['{"results":[{"__proto__":{}}]}', /^is invalid because row 0 at byte 12 has a key that is not allowed: __proto__/],
    [`{"results":[1,${nested(MAX_DEPTH + 1)}]}`, /^is invalid because row 1 at byte 14 is nested 101 levels deep/],
    [`{"a":${nested(MAX_DEPTH)}}`, /^is invalid because member "a" at byte 5 is nested 101 levels deep/],
  ])("%s: the error has the position", (document, message) => {
    for (const size of [1, 5, 1000]) expect(read(document, [size])).toEqual(expect.stringMatching(exactly(message)));
  });

  it("does not nest too deep with a row of 100 levels, or a member of 99", () => {
    expect(read(`{"results":[${nested(MAX_DEPTH)}]}`)).toHaveProperty("rest.results", true);
    expect(read(`{"a":${nested(MAX_DEPTH - 1)}}`)).toHaveProperty("rest.a");
  });
});

describe("the limits of a document", () => {
  it.each([[1], [7], [1000]])(
    "apply to each row and to everything else together, to the byte, in chunks of %i",
    (size) => {
      const document = '{"name":"ab", "results":[{"a":"é"} ,"123456789",  {"a":"x"}],"m":[1]}';
      const refused = (max_row_bytes: number, max_rest_bytes: number) =>
        read(document, [size], { max_row_bytes, max_rest_bytes });
      expect(refused(11, 25)).toHaveProperty("rows.length", 3);
      expect(refused(10, 25)).toBe("has more than 10 bytes in row 1, which starts at byte 37");
      expect(refused(9, 25)).toBe("has more than 9 bytes in row 0, which starts at byte 25");
      expect(refused(11, 24)).toBe(
        'has more than 24 bytes outside the rows of "results": the limit is exceeded in the value at byte 66',
      );
      expect(refused(11, 18)).toBe(
        'has more than 18 bytes outside the rows of "results": the limit is exceeded in the value at byte 14',
      );
    },
  );

  it("are reported before the end of a value that is too long", () => {
    const limits = { max_row_bytes: 50, max_rest_bytes: 50 };
    expect(read(`{"results":["${"x".repeat(100)}`, [1], limits)).toBe(
      "has more than 50 bytes in row 0, which starts at byte 12",
    );
    expect(read(`{"${"x".repeat(100)}`, [1], limits)).toMatch(/^has more than 50 bytes outside the rows/);
    expect(read(`{"a":${"1".repeat(100)}`, [1], limits)).toMatch(/^has more than 50 bytes outside the rows/);
  });
});

describe("a large row in small chunks", () => {
  it("arrives whole", () => {
    const text = 'x\\"é'.repeat(4_000_000);
    const found = read(`{"results":[{"text":"${text}"},2]}`, [1024]);
    // Compared here, because a difference of 20 MB would be printed.
    const wanted = { rest: { results: true }, rows: [{ text: text.replaceAll("\\", "") }, 2] };
    expect(isDeepStrictEqual(found, wanted)).toBe(true);
  });

  it("is copied a few times at most", () => {
    const bytes = new GrowingBytes();
    const part = new Uint8Array(1024).fill(0x61);
    let copied = 0;
    while (bytes.length < 20e6) {
      const { length, capacity } = bytes;
      bytes.append(part);
      copied += part.length + (bytes.capacity === capacity ? 0 : length);
    }
    expect(copied).toBeLessThan(3 * bytes.length);
    expect(bytes.capacity).toBeLessThan(2 * bytes.length);
    const { capacity } = bytes;
    expect(bytes.takeText()).toHaveLength(20_000_768);
    bytes.append(part);
    expect([bytes.length, bytes.capacity]).toEqual([1024, capacity]);
  });
});
