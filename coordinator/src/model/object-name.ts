/** The kinds of objects that pods refer to by name. They are the field names of `forage.operator.v1.Object.spec`. */
export const OBJECT_KINDS = [
  "secret",
  "config_map",
  "registry_credential",
  "claim",
  "priority_class",
] as const;
export type ObjectKind = (typeof OBJECT_KINDS)[number];

export interface ObjectName {
  /** The namespace. Empty for priority classes. */
  readonly namespace: string;
  readonly kind: ObjectKind;
  readonly name: string;
}

export function isObjectKind(text: string): text is ObjectKind {
  return OBJECT_KINDS.some((kind) => kind === text);
}

/** Returns a title for messages, such as `secret "db"`. */
export function titleOf({ kind, name }: Omit<ObjectName, "namespace">): string {
  return `${kind.replace("_", " ")} "${name}"`;
}
