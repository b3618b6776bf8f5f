import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";

/** The same message in two forms: for @bufbuild/protobuf and for ts-proto. */
export interface Sample {
  readonly message: Message;
  readonly plain: Record<string, unknown>;
}

/**
 * typical: every field has an ordinary value. extreme: every field has the limit of its range, and enums have an
 * unknown number. zero: every field that distinguishes its default from absence has the default.
 */
export type SampleKind = "typical" | "extreme" | "zero";

// Some messages contain themselves. Messages below this depth are left out.
const MAX_DEPTH = 3;
const UNKNOWN_ENUM_NUMBER = -7;

/** Returns a sample of a message. `variant` selects the member of each oneof, modulo their number. */
export function sampleOf(desc: DescMessage, kind: SampleKind, variant = 0, depth = 0): Sample {
  const message = create(desc);
  const target = reflect(desc, message);
  const plain: Record<string, unknown> = {};
  for (const oneof of desc.oneofs) {
    plain[oneof.localName] = undefined;
  }
  for (const field of desc.fields) {
    const member = field.oneof?.fields[variant % field.oneof.fields.length];
    if (field.oneof !== undefined && field !== member) {
      continue;
    }
    const value = fieldSample(field, kind, depth);
    if (field.oneof !== undefined) {
      plain[field.oneof.localName] = value && { $case: field.jsonName, value: value.plain };
    } else {
      plain[field.jsonName] = value?.plain;
    }
    if (value !== undefined) {
      value.set(target);
    }
  }
  return { message, plain };
}

interface FieldSample {
  readonly plain: unknown;
  readonly set: (target: ReturnType<typeof reflect>) => void;
}

function fieldSample(field: DescField, kind: SampleKind, depth: number): FieldSample | undefined {
  switch (field.fieldKind) {
    case "list": {
      const items = field.message !== undefined && depth >= MAX_DEPTH ? [] : itemsOf(field, kind, depth);
      return {
        plain: items.map((item) => item.plain),
        set: (target) => {
          const list = target.get(field);
          for (const item of items) {
            list.add(item.reflected);
          }
        },
      };
    }
    case "map": {
      const items = field.message !== undefined && depth >= MAX_DEPTH ? [] : itemsOf(field, kind, depth);
      const entries = items.map((item, index) => [["a.b/c", ""][index] ?? "", item] as const);
      return {
        plain: Object.fromEntries(entries.map(([key, item]) => [key, item.plain])),
        set: (target) => {
          const map = target.get(field);
          for (const [key, item] of entries) {
            map.set(key, item.reflected);
          }
        },
      };
    }
    default: {
      if (field.message !== undefined && depth >= MAX_DEPTH) {
        return undefined;
      }
      const { plain, reflected } = valueSample(field, kind, depth);
      return { plain, set: (target) => target.set(field, reflected) };
    }
  }
}

interface Value {
  readonly plain: unknown;
  readonly reflected: unknown;
}

function itemsOf(field: DescField, kind: SampleKind, depth: number): Value[] {
  return kind === "zero"
    ? [valueSample(field, "zero", depth)]
    : [valueSample(field, kind, depth), valueSample(field, "zero", depth)];
}

function valueSample(field: DescField, kind: SampleKind, depth: number): Value {
  if (field.message !== undefined) {
    const sample = wellKnown(field.message, kind) ?? sampleOf(field.message, kind, depth, depth + 1);
    return { plain: sample.plain, reflected: reflect(field.message, sample.message) };
  }
  if (field.enum !== undefined) {
    const known = field.enum.values.find((value) => value.number !== 0)?.number ?? 0;
    const number = { typical: known, extreme: UNKNOWN_ENUM_NUMBER, zero: 0 }[kind];
    return { plain: number, reflected: number };
  }
  const value = scalar(field.scalar ?? ScalarType.BYTES, kind);
  return { plain: value instanceof Uint8Array ? Buffer.from(value) : value, reflected: value };
}

/** Returns samples of two well-known types that have a JSON form of their own, with fields that don't accept every value. */
function wellKnown(desc: DescMessage, kind: SampleKind): Sample | undefined {
  const values = {
    "google.protobuf.Duration": {
      typical: { seconds: 1n, nanos: 500_000_000 },
      extreme: { seconds: -315_575_999_999n, nanos: -999_999_999 },
      zero: { seconds: 0n, nanos: 0 },
    },
    "google.protobuf.Timestamp": {
      typical: { seconds: 1_700_000_000n, nanos: 120_000_000 },
      extreme: { seconds: -62_135_596_800n, nanos: 0 },
      zero: { seconds: 0n, nanos: 0 },
    },
  };
  const found = Object.entries(values).find(([name]) => name === desc.typeName);
  if (found === undefined) {
    return undefined;
  }
  const plain = found[1][kind];
  const message = create(desc);
  const target = reflect(desc, message);
  for (const field of desc.fields) {
    target.set(field, field.name === "seconds" ? plain.seconds : plain.nanos);
  }
  return { message, plain };
}

function scalar(type: ScalarType, kind: SampleKind): unknown {
  const [typical, extreme, zero] = SCALARS[type];
  return { typical, extreme, zero }[kind];
}

const SIGNED_32 = [-5, -(2 ** 31), 0] as const;
const UNSIGNED_32 = [7, 2 ** 32 - 1, 0] as const;
const SIGNED_64 = [-9n, -(2n ** 63n), 0n] as const;
// One more than the integers that a JavaScript number represents exactly.
const UNSIGNED_64 = [2n ** 53n + 1n, 2n ** 64n - 1n, 0n] as const;

const SCALARS: Readonly<Record<ScalarType, readonly [typical: unknown, extreme: unknown, zero: unknown]>> = {
  [ScalarType.BOOL]: [true, true, false],
  [ScalarType.STRING]: ["name", "\0ä😀\n", ""],
  [ScalarType.BYTES]: [Uint8Array.of(1, 2), Uint8Array.of(0, 128, 255), new Uint8Array()],
  [ScalarType.DOUBLE]: [0.1, -Number.MAX_VALUE, 0],
  [ScalarType.FLOAT]: [0.5, Math.fround(3.4e38), 0],
  [ScalarType.INT32]: SIGNED_32,
  [ScalarType.SINT32]: SIGNED_32,
  [ScalarType.SFIXED32]: SIGNED_32,
  [ScalarType.UINT32]: UNSIGNED_32,
  [ScalarType.FIXED32]: UNSIGNED_32,
  [ScalarType.INT64]: SIGNED_64,
  [ScalarType.SINT64]: SIGNED_64,
  [ScalarType.SFIXED64]: SIGNED_64,
  [ScalarType.UINT64]: UNSIGNED_64,
  [ScalarType.FIXED64]: UNSIGNED_64,
};
