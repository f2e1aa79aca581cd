import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { isObject } from "../../../platform/lib/json/json.ts";

/** Thrown when the body or the content type of a request is not valid for OTLP. The message is one sentence for the client. */
export class OtlpError extends Error {
  readonly status: 400 | 415;

  constructor(message: string, status: 400 | 415 = 400) {
    super(message);
    this.status = status;
  }
}

/** Deeper attribute values are refused, because the readers of values are recursive. */
const MAX_VALUE_DEPTH = 100;

/** A protobuf message without fields takes 2 bytes of a request, and up to 500 bytes of memory. */
const MAX_MESSAGES = 1_000_000;

/** Counts protobuf messages (in JSON: objects) and nesting levels while one request is read. */
class ReadLimits {
  #messages = 0;
  #depth = 0;

  countMessage(): void {
    if (++this.#messages > MAX_MESSAGES)
      throw new OtlpError(
        `The request has more than ${MAX_MESSAGES} protobuf messages or JSON objects: send fewer spans per request.`,
      );
  }

  nested<T>(read: () => T): T {
    if (++this.#depth > MAX_VALUE_DEPTH)
      throw new OtlpError(`An attribute value is nested more than ${MAX_VALUE_DEPTH} levels deep.`);
    const value = read();
    this.#depth--;
    return value;
  }
}

/** How a kind of field is read from protobuf and from OTLP/JSON. */
interface Kind<T> {
  wire: WireType;
  empty(): T;
  /** `before` is the value of the field so far. */
  fromWire(reader: BinaryReader, limits: ReadLimits, before: T): T;
  /** `name` is used in error messages. */
  fromJson(json: unknown, limits: ReadLimits, name: string): T;
}

/** A protobuf message that can be a request body. */
interface MessageKind<M> extends Kind<M> {
  readProtobuf(bytes: Uint8Array): M;
  readJson(json: unknown): M;
}

export type Attributes = Map<string, unknown>;

function refuse(name: string, wanted: string, json: unknown): never {
  const given = JSON.stringify(json)?.slice(0, 100);
  throw new OtlpError(`${name} must be ${wanted}, not ${given}.`);
}

/** Postgres cannot store NUL in text. */
const withoutNul = (text: string): string => (text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text);

function scalar<T>(
  wire: WireType,
  empty: T,
  fromWire: (reader: BinaryReader) => T,
  fromJson: (json: unknown, name: string) => T,
): Kind<T> {
  return { wire, empty: () => empty, fromWire, fromJson: (json, _, name) => fromJson(json, name) };
}

const { Varint, Bit64, LengthDelimited } = WireType;

const textOfJson = (json: unknown, name: string): string =>
  typeof json === "string" ? json : refuse(name, "a string", json);

export const text = scalar(LengthDelimited, "", (reader) => withoutNul(reader.string()), textOfJson);

const encoded = (reader: BinaryReader, encoding: "hex" | "base64"): string => {
  const { buffer, byteOffset, byteLength } = reader.bytes();
  return Buffer.from(buffer, byteOffset, byteLength).toString(encoding);
};

/** An id: bytes in protobuf and hex in JSON, converted to lower-case hex. The length is not checked. */
export const id = scalar(
  LengthDelimited,
  "",
  (reader) => encoded(reader, "hex"),
  (json, name) => textOfJson(json, name).toLowerCase(),
);

const INTEGER = /^-?\d{1,20}$/;

function bigintOf(json: unknown, name: string): bigint {
  if (Number.isInteger(json) && Math.abs(json as number) < 2 ** 64) return BigInt(json as number);
  if (typeof json === "string" && INTEGER.test(json)) return BigInt(json);
  return refuse(name, "an integer", json);
}

/** A time in nanoseconds since the epoch, converted to microseconds. Results beyond 2^53 lose precision. */
export const time = scalar(
  Bit64,
  0,
  (reader) => Number(BigInt(reader.fixed64()) / 1000n),
  (json, name) => Number(bigintOf(json, name) / 1000n),
);

/** An enum: its number, or in JSON also its name. Unknown names are refused. */
export const enumOf = (names: readonly string[]) =>
  scalar(
    Varint,
    0,
    (reader) => reader.int32(),
    (json, name) => {
      const code = typeof json === "string" ? names.indexOf(json) : json;
      return Number.isInteger(code) && code !== -1 ? Number(code) : refuse(name, `one of ${names.join(", ")}`, json);
    },
  );

export function repeated<T>(item: Kind<T>): Kind<T[]> {
  return {
    wire: item.wire,
    empty: () => [],
    fromWire: (reader, limits, before) => {
      before.push(item.fromWire(reader, limits, item.empty()));
      return before;
    },
    fromJson: (json, limits, name) =>
      Array.isArray(json) ? json.map((value) => item.fromJson(value, limits, name)) : refuse(name, "an array", json),
  };
}

/** A field of a protobuf message: its number, its kind, and its name in JSON if this is not the key in camelCase. */
type Fields<M> = { [K in keyof M]: [number: number, kind: Kind<M[K]>, json_name?: string] };

const camelCase = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

interface Field {
  key: string;
  json_name: string;
  kind: Kind<unknown>;
}

/** The fields, indexed by their number. */
function byNumber(fields: Fields<Record<string, unknown>>): (Field | undefined)[] {
  const list: (Field | undefined)[] = [];
  for (const [key, [number, kind, json_name = camelCase(key)]] of Object.entries(fields)) {
    list[number] = { key, kind, json_name };
  }
  return list;
}

export function message<M extends object>(fields: Fields<M>): MessageKind<M> {
  const by_number = byNumber(fields as unknown as Fields<Record<string, unknown>>);
  const list = by_number.filter((field) => field !== undefined);
  const empty = () => Object.fromEntries(list.map(({ key, kind }) => [key, kind.empty()]));
  const kind: Kind<Record<string, unknown>> = {
    wire: LengthDelimited,
    empty,
    fromWire: (reader, limits, read) => takeFields(reader, limits, reader.uint32(), read),
    fromJson: (json, limits, name) => {
      if (!isObject(json)) return refuse(name, "an object", json);
      limits.countMessage();
      const read = empty();
      for (const { key, kind, json_name } of list) {
        const value = json[json_name] ?? null;
        if (value !== null) read[key] = kind.fromJson(value, limits, json_name);
      }
      return read;
    },
  };
  function takeFields(reader: BinaryReader, limits: ReadLimits, length: number, read: Record<string, unknown>) {
    readFields(reader, limits, length, (number, wire) => {
      const field = by_number[number];
      if (field === undefined) reader.skip(wire, number);
      else read[field.key] = readField(field, reader, limits, wire, read[field.key]);
    });
    return read;
  }
  return {
    ...(kind as unknown as Kind<M>),
    readProtobuf: (bytes) => takeFields(new BinaryReader(bytes), new ReadLimits(), bytes.length, empty()) as M,
    readJson: (json) => kind.fromJson(json, new ReadLimits(), "The body") as M,
  };
}

function readField(field: Field, reader: BinaryReader, limits: ReadLimits, wire: WireType, before: unknown): unknown {
  if (field.kind.wire !== wire) throw new OtlpError(`The field ${field.key} has the unsupported wire type ${wire}.`);
  return field.kind.fromWire(reader, limits, before);
}

/** BinaryReader checks only the end of the body. A field that is too long would extend into the next protobuf message. */
function readFields(
  reader: BinaryReader,
  limits: ReadLimits,
  length: number,
  take: (number: number, wire: WireType) => void,
): void {
  limits.countMessage();
  const end = reader.pos + length;
  while (reader.pos < end) {
    const [number, wire] = reader.tag();
    take(number, wire);
  }
  if (reader.pos > end) throw new OtlpError("A field is longer than the protobuf message that contains it.");
}

const bool = scalar<unknown>(
  Varint,
  false,
  (reader) => reader.bool(),
  (json, name) => (typeof json === "boolean" ? json : refuse(name, "a boolean", json)),
);

/** Integers beyond 2^53 are decimal strings. */
const integer = (value: bigint): number | string =>
  BigInt.asIntN(54, value) === value ? Number(value) : value.toString();

const int64 = scalar<unknown>(
  Varint,
  0,
  (reader) => integer(BigInt(reader.int64())),
  (json, name) => integer(bigintOf(json, name)),
);

/** NaN and infinity are null, as JSON cannot express them. */
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

const double = scalar<unknown>(
  Bit64,
  0,
  (reader) => finite(reader.double()),
  (json, name) => {
    const value = typeof json === "string" && json !== "" ? Number(json) : json;
    const isNumber = typeof value === "number" && (json === "NaN" || !Number.isNaN(value));
    return isNumber ? finite(value) : refuse(name, "a number", json);
  },
);

const base64 = scalar(LengthDelimited, "", (reader) => encoded(reader, "base64"), textOfJson);

const mapped = <T>(kind: Kind<T>, map: (value: T) => unknown): Kind<unknown> => ({
  ...kind,
  fromWire: (reader, limits) => map(kind.fromWire(reader, limits, kind.empty())),
  fromJson: (json, limits, name) => map(kind.fromJson(json, limits, name)),
});

/**
 * Converts an AnyValue to JSON: bytes become base64, and a list of keys and values becomes an object. If a protobuf message sets several
 * fields of the oneof, the last one is used.
 */
const anyValue: Kind<unknown> = {
  wire: LengthDelimited,
  empty: () => null,
  fromWire: (reader, limits, before) =>
    limits.nested(() => {
      let value = before;
      readFields(reader, limits, reader.uint32(), (number, wire) => {
        const field = VALUES[number];
        if (field === undefined) reader.skip(wire, number);
        else value = readField(field, reader, limits, wire, null);
      });
      return value;
    }),
  fromJson: (json, limits, name) =>
    limits.nested(() => {
      if (!isObject(json)) return refuse(name, "an object", json);
      limits.countMessage();
      const field = VALUES.find((known) => known !== undefined && (json[known.json_name] ?? null) !== null);
      return field === undefined ? null : field.kind.fromJson(json[field.json_name], limits, field.json_name);
    }),
};

const keyValue = message<{ key: string; value: unknown }>({ key: [1, text], value: [2, anyValue] });

/**
 * Keys and values; the last value of a repeated key is used. `__proto__` is omitted, because it would change the prototype of objects that
 * it is copied to.
 */
export const attributes: Kind<Attributes> = {
  wire: LengthDelimited,
  empty: () => new Map(),
  fromWire: (reader, limits, before) => {
    const { key, value } = keyValue.fromWire(reader, limits, keyValue.empty());
    return key === "__proto__" ? before : before.set(key, value);
  },
  fromJson: (json, limits, name) => {
    const entries = repeated(keyValue).fromJson(json, limits, name);
    return new Map(entries.filter(({ key }) => key !== "__proto__").map(({ key, value }) => [key, value]));
  },
};

const arrayValue = message<{ values: unknown[] }>({ values: [1, repeated(anyValue)] });
const keyValueList = message<{ values: Attributes }>({ values: [1, attributes] });

const VALUES = byNumber({
  string_value: [1, text],
  bool_value: [2, bool],
  int_value: [3, int64],
  double_value: [4, double],
  array_value: [5, mapped(arrayValue, ({ values }) => values)],
  kvlist_value: [6, mapped(keyValueList, ({ values }) => Object.fromEntries(values))],
  bytes_value: [7, base64],
});
