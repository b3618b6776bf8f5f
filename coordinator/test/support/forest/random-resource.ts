import type { Random } from "@forage/common/random";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import type { FieldSchema } from "@forage/proto/forest-schema";
import { type Draft, fieldsOf, setField } from "./fields.ts";
import { repair } from "./repair.ts";
import { samplesOf, valuesOf } from "./samples.ts";

/** Returns a valid resource of a random kind with random fields. */
export function randomResource(random: Random, name: string): ForageResource {
  const draft = randomMessage("forest.v1.ForageResource", random);
  draft.name = name;
  return ForageResource.fromPartial(draft);
}

function randomMessage(type: string, random: Random): Draft {
  const draft: Draft = { ...structuredClone(samplesOf(type).base) };
  const fields = fieldsOf(type);
  for (const field of fields.filter(({ oneof }) => oneof === undefined)) {
    if (random.chance(0.5)) setField(draft, field, randomValue(type, field, random));
  }
  for (const oneof of new Set(fields.flatMap(({ oneof: name }) => name ?? []))) {
    const member = random.pick(fields.filter((field) => field.oneof === oneof));
    setField(draft, member, randomValue(type, member, random));
  }
  return repair(type, draft, random);
}

function randomValue(type: string, field: FieldSchema, random: Random): unknown {
  const one = (): unknown =>
    field.kind === "message" ? randomMessage(field.type, random) : random.pick(valuesOf(type, field.name));
  if (!field.repeated) return one();
  return Array.from({ length: random.below(3) + 1 }, one);
}
