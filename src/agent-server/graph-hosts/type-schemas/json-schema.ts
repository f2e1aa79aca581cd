import ts from "typescript-5";
import type { JsonSchema } from "../host.ts";

/** Deeper types, such as the infinite `Deep<T> = { deeper: Deep<T[]> }`, become `{}`. */
const MAX_DEPTH = 30;
const MAX_SCHEMAS = 5_000;

/** Properties that identify Overwrite and Command, the types that LangGraph accepts instead of an update or an input. */
const LANGGRAPH_ALTERNATIVES = ["__overwrite__", "lg_name"];

/** A message as clients send it and the server returns it, instead of the fields of its class. */
const BASE_MESSAGE: JsonSchema = {
  title: "BaseMessage",
  type: "object",
  properties: {
    type: { type: "string", enum: ["human", "ai", "system", "tool", "developer", "function", "remove"] },
    content: { anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }] },
    id: { type: "string" },
    name: { type: "string" },
    tool_calls: {
      type: "array",
      items: {
        type: "object",
        properties: { id: { type: "string" }, name: { type: "string" }, args: { type: "object" } },
        required: ["name", "args"],
      },
    },
    tool_call_id: { type: "string" },
    additional_kwargs: { type: "object" },
    response_metadata: { type: "object" },
  },
  required: ["type", "content"],
};
const MESSAGE_REF = "#/definitions/BaseMessage";

/**
 * Converts a type to a JSON schema; null if it would permit any value. Parts that JSON does not support (functions, symbols, class
 * instances, unresolved types) become `{}`.
 */
export function jsonSchemaOf(type: ts.Type, program: ts.Program): JsonSchema | null {
  const writer = new SchemaWriter(program);
  const schema = writer.inline(type, 0);
  if (isAny(schema) || (Object.keys(schema).length === 1 && schema.type === "object")) return null;
  const definitions = Object.keys(writer.definitions).length > 0 ? { definitions: writer.definitions } : {};
  return { $schema: "http://json-schema.org/draft-07/schema#", ...schema, ...definitions };
}

const isAny = (schema: JsonSchema): boolean => Object.keys(schema).length === 0;

class SchemaWriter {
  readonly definitions: Record<string, JsonSchema> = {};
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;
  readonly #names = new Map<ts.Type, string>();
  /** Unnamed types whose schemas are being built, within the current definition. */
  #current = new Set<ts.Type>();
  #written = 0;

  constructor(program: ts.Program) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
  }

  /** Returns the schema of a type. For a type that {@link #nameOf} names, adds the schema to `definitions` and returns a reference to it. */
  schema(type: ts.Type, depth: number): JsonSchema {
    if (depth > MAX_DEPTH || ++this.#written > MAX_SCHEMAS) return {};
    const symbol = this.#nameOf(type);
    if (!symbol) {
      if (this.#current.has(type)) return {};
      this.#current.add(type);
      const schema = this.inline(type, depth);
      this.#current.delete(type);
      return schema;
    }
    let name = this.#names.get(type);
    if (name === undefined) {
      name = symbol.name;
      for (let n = 2; name in this.definitions || name === BASE_MESSAGE.title; n++) name = `${symbol.name}_${n}`;
      this.#names.set(type, name);
      this.definitions[name] = {};
      const outer = this.#current;
      this.#current = new Set();
      const schema = this.inline(type, depth);
      this.#current = outer;
      this.definitions[name] = isAny(schema) ? schema : { ...schema, ...this.#annotationsOf(symbol) };
    }
    return { $ref: `#/definitions/${name}` };
  }

  inline(type: ts.Type, depth: number): JsonSchema {
    const checker = this.#checker;
    const { TypeFlags } = ts;
    if (type.flags & (TypeFlags.Boolean | TypeFlags.BooleanLiteral)) {
      const name = checker.typeToString(type);
      return name === "boolean" ? { type: "boolean" } : { type: "boolean", enum: [name === "true"] };
    }
    if (type.isStringLiteral() || type.isNumberLiteral()) return { type: typeof type.value, enum: [type.value] };
    if (type.flags & TypeFlags.StringLike) return { type: "string" };
    if (type.flags & TypeFlags.NumberLike) return { type: "number" };
    if (type.flags & TypeFlags.Null) return { type: "null" };
    if (type.flags & TypeFlags.NonPrimitive) return { type: "object" };
    if (type.isUnion()) return this.#union(type.types, depth);
    if (type.isIntersection()) {
      // The base type of a branded type: string & { __brand: "id" }.
      const branded = type.types.find((part) => part.flags & (TypeFlags.StringLike | TypeFlags.NumberLike));
      return branded ? this.inline(branded, depth) : this.#object(type, depth);
    }
    if (type.flags & TypeFlags.Object) return this.#object(type, depth);
    const constraint = type.flags & TypeFlags.Instantiable ? checker.getBaseConstraintOfType(type) : undefined;
    return constraint && constraint !== type ? this.inline(constraint, depth) : {};
  }

  #union(types: readonly ts.Type[], depth: number): JsonSchema {
    const { TypeFlags } = ts;
    const parts = this.#simplifyMessages(
      types
        .filter(({ flags }) => !(flags & (TypeFlags.Undefined | TypeFlags.Void)))
        .filter((part) => !LANGGRAPH_ALTERNATIVES.some((key) => part.getProperty(key))),
    );
    const literals = parts.filter((part) => part.isStringLiteral() || part.isNumberLiteral());
    const schemas = parts
      .filter((part) => !literals.includes(part as never))
      .map((part) => this.schema(part, depth + 1));
    if (literals.length > 0) {
      const values = literals.map((part) => part.value);
      const [kind, other] = new Set(values.map((value) => typeof value));
      schemas.unshift(other ? { enum: values } : { type: kind, enum: values });
    }
    const booleans = schemas.filter(({ type }) => type === "boolean");
    if (booleans.length === 2) schemas.splice(schemas.indexOf(booleans[0] as JsonSchema), 2, { type: "boolean" });
    const alternatives = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
    const [only] = alternatives;
    if (!only || alternatives.some(isAny)) return {};
    return alternatives.length === 1 ? only : { anyOf: alternatives };
  }

  /** Simplifies the types that LangGraph converts to messages: to the message lists if there are any, otherwise to the message. */
  #simplifyMessages(parts: ts.Type[]): ts.Type[] {
    if (!parts.some(({ symbol }) => symbol?.name === "SerializedConstructor")) return parts;
    const lists = parts.filter((part) => this.#checker.isArrayType(part));
    const isNull = ({ flags }: ts.Type) => flags & ts.TypeFlags.Null;
    return [...(lists.length > 0 ? lists : parts.filter(isMessage)), ...parts.filter(isNull)];
  }

  #object(type: ts.Type, depth: number): JsonSchema {
    const checker = this.#checker;
    if (isMessage(type)) {
      this.definitions.BaseMessage ??= BASE_MESSAGE;
      return { $ref: MESSAGE_REF };
    }
    if (checker.isTupleType(type)) return this.#tuple(type as ts.TupleTypeReference, depth);
    if (checker.isArrayType(type)) {
      const [element] = checker.getTypeArguments(type as ts.TypeReference);
      const items = element ? this.schema(element, depth + 1) : {};
      return isAny(items) ? { type: "array" } : { type: "array", items };
    }
    const { symbol } = type;
    const isBuiltIn = symbol?.flags & ts.SymbolFlags.Interface && this.#isFrom(symbol, "isSourceFileDefaultLibrary");
    if (isBuiltIn && symbol.name === "Date") return { type: "string", format: "date-time" };
    if (
      isBuiltIn ||
      symbol?.flags & ts.SymbolFlags.Class ||
      type.getCallSignatures().length > 0 ||
      type.getConstructSignatures().length > 0
    )
      return {};
    return this.#properties(type, depth);
  }

  #properties(type: ts.Type, depth: number): JsonSchema {
    const checker = this.#checker;
    const { TypeFlags } = ts;
    const properties: Record<string, JsonSchema> = {};
    const required: string[] = [];
    for (const property of checker.getPropertiesOfType(type)) {
      // Skips symbol keys.
      if (property.name.startsWith("__@")) continue;
      const value = checker.getTypeOfSymbol(property);
      const parts = value.isUnion() ? value.types : [value];
      const schema = this.schema(value, depth + 1);
      properties[property.name] = { ...schema, ...this.#annotationsOf(property) };
      const isOptional =
        property.flags & ts.SymbolFlags.Optional ||
        parts.some(
          (part) => part.flags & (TypeFlags.Undefined | TypeFlags.Void) || part.getCallSignatures().length > 0,
        );
      if (!isOptional) required.push(property.name);
    }
    const index = checker.getIndexInfosOfType(type).find(({ keyType }) => keyType.flags & TypeFlags.String);
    const others = index ? this.schema(index.type, depth + 1) : {};
    if (Object.keys(properties).length === 0 && !index) return {};
    return {
      type: "object",
      ...(Object.keys(properties).length > 0 && { properties }),
      ...(required.length > 0 && { required }),
      ...(!isAny(others) && { additionalProperties: others }),
    };
  }

  #tuple(type: ts.TupleTypeReference, depth: number): JsonSchema {
    const checker = this.#checker;
    const { elementFlags, minLength, fixedLength } = type.target;
    const schemas = checker.getTypeArguments(type).map((element) => this.schema(element, depth + 1));
    const rest = elementFlags.findIndex((flag) => flag & ts.ElementFlags.Variable);
    return {
      type: "array",
      items: schemas.slice(0, fixedLength),
      minItems: minLength,
      ...(rest === -1 ? { maxItems: fixedLength } : rest === schemas.length - 1 && { additionalItems: schemas[rest] }),
    };
  }

  /** Returns the symbol that names a type's definition: an interface, or an alias of the project. Most package aliases are helper types. */
  #nameOf(type: ts.Type): ts.Symbol | undefined {
    const { SymbolFlags, TypeFlags } = ts;
    if (!(type.flags & (TypeFlags.Object | TypeFlags.UnionOrIntersection)) || isMessage(type)) return undefined;
    const { aliasSymbol: alias, symbol } = type;
    if (alias && !this.#isFrom(alias, "isSourceFileFromExternalLibrary", "isSourceFileDefaultLibrary")) return alias;
    return symbol && symbol.flags & SymbolFlags.Interface && !this.#isFrom(symbol, "isSourceFileDefaultLibrary")
      ? symbol
      : undefined;
  }

  #isFrom(symbol: ts.Symbol, ...kinds: ("isSourceFileFromExternalLibrary" | "isSourceFileDefaultLibrary")[]): boolean {
    const files = symbol.declarations?.map((declaration) => declaration.getSourceFile()) ?? [];
    return files.some((file) => kinds.some((is) => this.#program[is](file)));
  }

  #annotationsOf(symbol: ts.Symbol): JsonSchema {
    const description = ts.displayPartsToString(symbol.getDocumentationComment(this.#checker));
    return description === "" ? {} : { description };
  }
}

/** A structural check, because a project may have several copies of @langchain/core. */
const isMessage = (type: ts.Type): boolean =>
  ["content", "lc_namespace", "toDict"].every((name) => type.getProperty(name) !== undefined);
