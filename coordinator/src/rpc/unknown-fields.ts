import { forageSchema } from "@forage/proto/forage-schema";
import { type FieldSchema, forestSchema } from "@forage/proto/forest-schema";
import type { ServiceDefinition } from "@grpc/grpc-js";
import { CoordinatorError, type FieldViolation } from "../errors.ts";

/** The most violations in an answer. */
const MAX_VIOLATIONS = 20;
/** The deepest nesting that is searched. The contract nests at most 14 messages. */
const MAX_DEPTH = 64;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/**
 * Finds fields of encoded `forest.v1` and `forage.operator.v1` messages that this version does not
 * know. Decoding would silently drop them from the request of a newer client. Malformed bytes are
 * left to the decoder.
 */
export class UnknownFields {
  readonly #tables = new Map<string, ReadonlyMap<number, FieldSchema>>();
  readonly #found = new WeakMap<object, readonly FieldViolation[]>();

  /**
   * Returns the service definition with decoders that record unknown fields. A request type must
   * have the name of its method, as in `PlanRequest`.
   */
  checked(definition: ServiceDefinition): ServiceDefinition {
    const methods = Object.entries(definition).map(([name, method]) => {
      const decode = this.decoding(requestTypeOf(method.path), method.requestDeserialize);
      return [name, { ...method, requestDeserialize: decode }] as const;
    });
    return Object.fromEntries(methods);
  }

  /** Wraps a decoder, so that `assertKnown` can check its results. */
  decoding<T extends object>(type: string, decode: (bytes: Buffer) => T): (bytes: Buffer) => T {
    return (bytes) => {
      const found = this.find(type, bytes);
      const request = decode(bytes);
      if (found.length > 0) this.#found.set(request, found);
      return request;
    };
  }

  /** Throws INVALID with the path and number of each unknown field. */
  readonly assertKnown = (request: unknown): void => {
    const found = typeof request === "object" && request !== null ? this.#found.get(request) : undefined;
    if (found === undefined) return;
    const paths = found.slice(0, 5).map(({ field }) => field);
    const more = found.length > paths.length ? ` and ${found.length - paths.length} more` : "";
    throw new CoordinatorError(
      "INVALID",
      `this coordinator does not know the fields ${paths.join(", ")}${more}: upgrade it, or leave them out`,
      { violations: found },
    );
  };

  find(type: string, bytes: Buffer): readonly FieldViolation[] {
    const found: FieldViolation[] = [];
    this.#walk(type, bytes, 0, bytes.length, "", 0, found);
    return found;
  }

  #walk(
    type: string,
    bytes: Buffer,
    start: number,
    end: number,
    path: string,
    depth: number,
    found: FieldViolation[],
  ): void {
    const table = this.#tableOf(type);
    // The message is of another package, such as google.protobuf, whose messages do not change with
    // our versions.
    if (table === undefined) return;
    const counts = new Map<number, number>();
    const reader = new WireReader(bytes, start, end);
    while (reader.position < end && found.length < MAX_VIOLATIONS) {
      const tag = reader.varint();
      const number = tag >>> 3;
      const field = table.get(number);
      const from = reader.skip(tag & 7);
      if (from === undefined) return;
      if (field === undefined) {
        const at = path === "" ? `#${number}` : `${path}.#${number}`;
        found.push({ field: at, description: `field ${number} of ${type} is unknown to this version` });
      } else if (field.kind === "message" && !field.map && (tag & 7) === BYTES && depth < MAX_DEPTH) {
        const index = counts.get(number) ?? 0;
        if (field.repeated) counts.set(number, index + 1);
        const at = `${path}${path === "" ? "" : "."}${field.name}${field.repeated ? `[${index}]` : ""}`;
        this.#walk(field.type, bytes, from, reader.position, at, depth + 1, found);
      }
    }
  }

  #tableOf(type: string): ReadonlyMap<number, FieldSchema> | undefined {
    const known = this.#tables.get(type);
    if (known !== undefined) return known;
    const schema = forestSchema[type] ?? forageSchema[type];
    if (schema === undefined) return undefined;
    const table = new Map(schema.fields.map((field) => [field.number, field]));
    this.#tables.set(type, table);
    return table;
  }
}

/**
 * Returns the request type of a method's path, such as `forage.operator.v1.PlanRequest` for
 * `/forage.operator.v1.OperatorService/Plan`.
 */
export function requestTypeOf(path: string): string {
  const [, service = "", method = ""] = path.split("/");
  return `${service.slice(0, service.lastIndexOf("."))}.${method}Request`;
}

/** Iterates over the fields of an encoded message. */
class WireReader {
  readonly #bytes: Buffer;
  readonly #end: number;
  position: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.position = start;
    this.#end = end;
  }

  /** Reads a varint. Returns its lowest 32 bits. */
  varint(): number {
    let value = 0;
    for (let shift = 0; this.position < this.#end; shift += 7) {
      const byte = this.#bytes[this.position] ?? 0;
      this.position += 1;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value >>> 0;
  }

  /**
   * Skips a field's content. Returns where the content starts, or undefined if the bytes are
   * malformed.
   */
  skip(wireType: number): number | undefined {
    let start = this.position;
    if (wireType === VARINT) this.varint();
    else if (wireType === FIXED64) this.position += 8;
    else if (wireType === FIXED32) this.position += 4;
    else if (wireType === BYTES) {
      const length = this.varint();
      start = this.position;
      this.position += length;
    } else return undefined;
    return this.position > this.#end ? undefined : start;
  }
}
