import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type FileRegistry,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

// The packages of libraries, which change only with them.
const WELL_KNOWN = "google.protobuf";

type DescType = FileRegistry extends Iterable<infer Type> ? Type : never;

/**
 * Describes everything that two programs must agree on to understand each other, one line per element: packages,
 * services, methods, messages, fields, enums, their values, reserved numbers and names.
 */
export function describeWire(registry: FileRegistry): string[] {
  const files = [...registry.files].filter((file) => file.proto.package !== WELL_KNOWN);
  const packages = [...new Set(files.map((file) => `package ${file.proto.package} ${file.proto.syntax}`))];
  const types = [...registry]
    .filter((type) => type.file.proto.package !== WELL_KNOWN)
    .sort((a, b) => order(a.typeName, b.typeName));
  return [...packages.sort(order), ...types.flatMap(typeLines)];
}

function typeLines(type: DescType): string[] {
  switch (type.kind) {
    case "service":
      return [`service ${type.typeName}`, ...type.methods.map(methodLine).sort(order)];
    case "message":
      return messageLines(type);
    case "enum":
      return enumLines(type);
    case "extension":
      // No contract uses extensions, and proto3 allows them for options only.
      throw new Error(`${type.typeName}: extensions are not provided for`);
  }
}

function methodLine({ parent, name, proto, input, output }: DescMethod): string {
  const request = `${proto.clientStreaming ? "stream " : ""}${input.typeName}`;
  const response = `${proto.serverStreaming ? "stream " : ""}${output.typeName}`;
  return `rpc ${parent.typeName}.${name} (${request}) returns (${response})`;
}

function messageLines({ typeName, fields, proto }: DescMessage): string[] {
  return [
    `message ${typeName}`,
    ...[...fields]
      .sort((a, b) => a.number - b.number)
      .map((field) => `field ${typeName} ${fieldText(field)}`),
    // A message's range excludes its end, and an enum's includes it.
    ...proto.reservedRange
      .map(({ start, end }) => `reserved ${typeName} ${range(start, end - 1)}`)
      .sort(order),
    ...proto.reservedName.map((name) => `reserved ${typeName} "${name}"`).sort(order),
  ];
}

function enumLines({ typeName, values, proto }: DescEnum): string[] {
  return [
    `enum ${typeName}${proto.options?.allowAlias ? " allow_alias" : ""}`,
    ...[...values]
      .sort((a, b) => a.number - b.number || order(a.name, b.name))
      .map((value) => `value ${typeName} ${value.number} ${value.name}`),
    ...proto.reservedRange.map(({ start, end }) => `reserved ${typeName} ${range(start, end)}`).sort(order),
    ...proto.reservedName.map((name) => `reserved ${typeName} "${name}"`).sort(order),
  ];
}

function fieldText(field: DescField): string {
  const oneof = field.oneof === undefined ? "" : ` oneof=${field.oneof.name}`;
  const unpacked = field.fieldKind === "list" && field.proto.options?.packed === false ? " unpacked" : "";
  return `${field.number} ${label(field)}${typeText(field)} ${field.name} json=${field.jsonName}${oneof}${unpacked}`;
}

function label(field: DescField): string {
  if (field.fieldKind === "list") {
    return "repeated ";
  }
  const explicit = field.fieldKind === "scalar" || field.fieldKind === "enum";
  return explicit && field.oneof === undefined && field.presence === FeatureSet_FieldPresence.EXPLICIT
    ? "optional "
    : "";
}

function typeText(field: DescField): string {
  const value =
    field.message?.typeName ?? field.enum?.typeName ?? scalarName(field.scalar ?? ScalarType.BYTES);
  return field.fieldKind === "map" ? `map<${scalarName(field.mapKey)}, ${value}>` : value;
}

function scalarName(type: ScalarType): string {
  return ScalarType[type].toLowerCase();
}

function range(first: number, last: number): string {
  return first === last ? String(first) : `${first} to ${last}`;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
