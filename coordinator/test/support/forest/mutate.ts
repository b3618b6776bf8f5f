import type { Random } from "@forage/common/random";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import type { FieldSchema } from "@forage/proto/forest-schema";
import { type Draft, fieldsOf, getField, setField } from "./fields.ts";

/**
 * Changes one random field of the request to an unusual value, and returns it as decoded from the
 * wire.
 */
export function mutated(request: ApplyResourcesRequest, random: Random): ApplyResourcesRequest {
  const draft = structuredClone(request) as unknown as Draft;
  mutate("forest.v1.ApplyResourcesRequest", draft, random);
  return ApplyResourcesRequest.decode(
    ApplyResourcesRequest.encode(draft as unknown as ApplyResourcesRequest).finish(),
  );
}

function mutate(type: string, draft: Draft, random: Random): void {
  const fields = fieldsOf(type);
  const field = random.pick(fields);
  const value = getField(draft, field);
  const descend = field.kind === "message" && value !== undefined && random.chance(0.85);
  if (descend) {
    const target = field.repeated ? pickItem(value, random) : (value as Draft);
    if (target !== undefined) {
      mutate(field.type, target, random);
      return;
    }
  }
  setField(draft, field, oddValue(field, value, random));
}

function oddValue(field: FieldSchema, value: unknown, random: Random): unknown {
  if (field.map) return oddMap(random);
  if (!field.repeated) return oddItem(field, random);
  const items = Array.isArray(value) ? value : [];
  return random.pick([
    [],
    [...items, ...items],
    [...items, oddItem(field, random)],
    Array.from({ length: random.pick([1, 17, 130]) }, () => oddItem(field, random)),
  ]);
}

function oddItem(field: FieldSchema, random: Random): unknown {
  if (field.kind === "message") return emptyOf(field.type);
  if (field.kind === "duration")
    return { seconds: random.pick([0n, -1n, 10n ** 12n]), nanos: random.pick([0, -5, 2_000_000_000]) };
  switch (field.type) {
    case "string":
      return random.pick(texts);
    case "bool":
      return true;
    case "uint32":
      return random.pick([0, 1, 65_536, 4_294_967_295]);
    case "int32":
      return random.pick([0, -1, 2_147_483_647, -2_147_483_648]);
    case "int64":
      return random.pick([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]);
    default:
      throw new Error(`no odd values for ${field.type}`);
  }
}

function oddMap(random: Random): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: random.pick([1, 3, 70]) }, (_, index) => [
      `${random.pick(texts)}${index}`,
      random.pick(texts),
    ]),
  );
}

/** Returns an empty message with the empty lists of ts-proto's messages. */
function emptyOf(type: string): Draft {
  const draft: Draft = {};
  for (const field of fieldsOf(type)) {
    if (field.oneof !== undefined || field.kind === "duration") continue;
    if (field.repeated) setField(draft, field, []);
    else if (field.map) setField(draft, field, {});
    else if (field.kind === "scalar") setField(draft, field, zeroOf(field.type));
  }
  return draft;
}

function zeroOf(type: string): unknown {
  if (type === "string") return "";
  if (type === "bool") return false;
  return type === "int64" ? 0n : 0;
}

function pickItem(value: unknown, random: Random): Draft | undefined {
  const items = value as Draft[];
  return items.length === 0 ? undefined : random.pick(items);
}

const texts = [
  "",
  " ",
  "a",
  "A",
  "-",
  "--privileged",
  "..",
  "../../etc",
  "/",
  "/a:b",
  "a\0b",
  "a\r\nX: y",
  "ü",
  "😀",
  "\u202e",
  "{{ .Env }}",
  "$(reboot)",
  "*",
  "*.*.example.com",
  "127.0.0.1",
  "::1%eth0",
  "1e400",
  "1e999999999",
  "-5",
  "9".repeat(70),
  "25%",
  "0%",
  "NaN",
  "(?=a)",
  "(a{1000}){1000}",
  "((((((((((a*)*)*)*)*)*)*)*)*)*",
  "[",
  "\\",
  "@every 1s",
  "61 * * * *",
  "0 0 30 2 *",
  "TZ=UTC 0 0 * * *",
  "metadata.labels['",
  "limits.gpu",
  "always",
  "x".repeat(64),
  "x".repeat(254),
  "x".repeat(5000),
  "😀".repeat(1000),
  "__proto__",
  "constructor",
  "toString",
];
