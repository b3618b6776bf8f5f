import { createFileRegistry, fromBinary, ScalarType } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** @import { DescField, DescMessage } from "@bufbuild/protobuf" */

// Source text of the module that lists a package's messages and fields, for validators: the generated
// fromJSON methods pass over what they don't know, so a misspelt field of a manifest would go unnoticed.
const HEADER = `// Generated from the .proto sources. Do not edit.

export interface FieldSchema {
  /** As in the .proto source: snake_case. */
  readonly name: string;
  /** The same in camelCase. JSON may use either. */
  readonly jsonName: string;
  readonly number: number;
  /** Of a map's values or a list's items, if it is one. A duration is text such as "1.5s". */
  readonly kind: "scalar" | "enum" | "message" | "duration";
  /** A scalar's name in .proto, or a full name such as "forest.v1.Container". */
  readonly type: string;
  readonly repeated: boolean;
  /** The keys are text. */
  readonly map: boolean;
  /** At most one field of a oneof may be set. */
  readonly oneof: string | undefined;
  /** Names an enum takes; JSON may use the numbers, too. */
  readonly values: readonly string[];
}

export interface MessageSchema {
  readonly name: string;
  readonly fields: readonly FieldSchema[];
}
`;

/**
 * @param {Uint8Array} descriptor a FileDescriptorSet
 * @param {string} protoPackage
 */
export function fieldTable(descriptor, protoPackage) {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptor));
  const rows = [...registry]
    .filter((type) => type.kind === "message" && type.file.proto.package === protoPackage)
    .map((type) => messageRow(/** @type {DescMessage} */ (type)));
  const name = `${protoPackage.split(".")[0]}Schema`;
  return `${HEADER}
/** By full name. */
export const ${name}: Readonly<Record<string, MessageSchema>> = {
${rows.join("\n")}
};
`;
}

/** @param {DescMessage} message */
function messageRow(message) {
  const rows = message.fields.map((field) => `      { ${fieldRow(field)} },`);
  return [
    `  ${JSON.stringify(message.typeName)}: {`,
    `    name: ${JSON.stringify(message.typeName)},`,
    "    fields: [",
    ...rows,
    "    ],",
    "  },",
  ].join("\n");
}

/** @param {DescField} field */
function fieldRow(field) {
  if (field.fieldKind === "map" && field.mapKey !== ScalarType.STRING) {
    throw new Error(`${field.parent.typeName}.${field.name}: map keys other than text are not provided for`);
  }
  const row = {
    name: field.name,
    jsonName: field.jsonName,
    number: field.number,
    ...valueType(field),
    repeated: field.fieldKind === "list",
    map: field.fieldKind === "map",
    oneof: field.oneof?.name,
    values: field.enum?.values.map((value) => value.name) ?? [],
  };
  return Object.entries(row)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
    .join(", ");
}

/** @param {DescField} field */
function valueType(field) {
  if (field.message !== undefined) {
    const type = field.message.typeName;
    return { kind: type === "google.protobuf.Duration" ? "duration" : "message", type };
  }
  if (field.enum !== undefined) {
    return { kind: "enum", type: field.enum.typeName };
  }
  return { kind: "scalar", type: ScalarType[/** @type {ScalarType} */ (field.scalar)].toLowerCase() };
}
