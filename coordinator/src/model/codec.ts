import { type BinaryWriter, keptWriter } from "@forage/proto/binary-writer";
import { PodRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../errors.ts";

interface Encoder<T> {
  encode(message: T, writer: BinaryWriter): { finish(): Uint8Array };
}

interface Decoder<T> {
  decode(bytes: Uint8Array): T;
}

/** The first byte of every value, which names its layout. Newer layouts are rejected. */
const LAYOUT_VERSION = 1;
const LAYOUT = Uint8Array.of(LAYOUT_VERSION);

export function encodeRecord<T>(type: Encoder<T>, message: T): Uint8Array {
  // Writes the first byte before the message, so that the bytes are copied only once.
  return type.encode(message, keptWriter().raw(LAYOUT)).finish();
}

/** Encodes a pod. Leaves out a template that is stored in a record of its own. */
export function encodePod(pod: PodRecord): Uint8Array {
  return encodeRecord(PodRecord, pod.templateRef === "" ? pod : { ...pod, template: undefined });
}

/** Decodes a record. @throws CoordinatorError INTERNAL that names the record. */
export function decodeRecord<T>(type: Decoder<T>, key: string, value: Uint8Array): T {
  if (value[0] !== LAYOUT_VERSION) {
    throw new CoordinatorError(
      "INTERNAL",
      `record ${key} has layout ${value[0]}, this version reads ${LAYOUT_VERSION}: was the store written by a newer coordinator?`,
    );
  }
  try {
    return type.decode(value.subarray(1));
  } catch (cause) {
    throw new CoordinatorError("INTERNAL", `record ${key} can't be decoded`, { cause });
  }
}

/** Encodes a record of `@forage/identity`, whose types are not generated from the API. */
export function encodeJsonRecord(value: unknown): Uint8Array {
  const body = new TextEncoder().encode(JSON.stringify(value));
  return Uint8Array.of(LAYOUT_VERSION, ...body);
}

/** Decodes a record. The caller guarantees that it was written by `encodeJsonRecord` with the same type. */
export function decodeJsonRecord<T>(key: string, value: Uint8Array): T {
  return decodeRecord({ decode: (bytes) => parseJson<T>(bytes) }, key, value);
}

function parseJson<T>(bytes: Uint8Array): T {
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}
