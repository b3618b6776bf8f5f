import { ForageResource } from "@forage/proto/forest/v1/forage";
import { type FieldSchema, forestSchema } from "@forage/proto/forest-schema";

const RESOURCE_TYPE = "forest.v1.ForageResource";

type Mapping = Readonly<Record<string, unknown>>;

/**
 * Returns a resource in the form of a manifest, with the field names of the contract. Reading the
 * result gives an equal resource.
 */
export function writeResource(resource: ForageResource): Mapping {
  const written = writeMessage(ForageResource.toJSON(resource) as Mapping, RESOURCE_TYPE);
  return withReplicas(written, resource);
}

/** Writes 0 replicas explicitly, because a manifest without a number means one replica. */
function withReplicas(written: Mapping, { spec }: ForageResource): Mapping {
  if (spec?.$case !== "containerService") return written;
  const { scaling } = spec.value;
  if (scaling === undefined || scaling.replicas > 0 || scaling.autoscaling !== undefined) return written;
  const service = written.container_service as Mapping;
  return { ...written, container_service: { ...service, scaling: { replicas: 0 } } };
}

function writeMessage(message: Mapping, type: string): Mapping {
  const fields = forestSchema[type]?.fields ?? [];
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = message[field.jsonName];
      return value === undefined ? [] : [[field.name, writeField(value, field)]];
    }),
  );
}

function writeField(value: unknown, field: FieldSchema): unknown {
  if (field.kind !== "message" || forestSchema[field.type] === undefined) return value;
  const write = (item: unknown): unknown => writeMessage(item as Mapping, field.type);
  if (field.repeated) return (value as readonly unknown[]).map(write);
  if (!field.map) return write(value);
  return Object.fromEntries(Object.entries(value as Mapping).map(([key, item]) => [key, write(item)]));
}
