/**
 * The kinds of OperatorService's objects, by their names on the wire. Pods refer to such objects by
 * name.
 */
export const OBJECT_KINDS = [
  "secret",
  "config_map",
  "registry_credential",
  "claim",
  "priority_class",
] as const;
export type ObjectKind = (typeof OBJECT_KINDS)[number];

/** The words for each kind in commands and lists. */
export const OBJECT_WORDS: Readonly<Record<ObjectKind, { readonly one: string; readonly many: string }>> = {
  secret: { one: "secret", many: "secrets" },
  config_map: { one: "config", many: "configs" },
  registry_credential: { one: "registry", many: "registries" },
  claim: { one: "claim", many: "claims" },
  priority_class: { one: "priority-class", many: "priority-classes" },
};

const OTHERS: Readonly<Record<string, ObjectKind>> = {
  configmap: "config_map",
  configmaps: "config_map",
  cm: "config_map",
  registrycredential: "registry_credential",
  registrycredentials: "registry_credential",
  pvc: "claim",
  persistentvolumeclaim: "claim",
  pc: "priority_class",
};

/**
 * Parses a kind in any spelling: `secret`, `secrets`, `config_map`, `priority-classes`, …;
 * undefined for other texts.
 */
export function parseObjectKind(text: string): ObjectKind | undefined {
  const plain = simplify(text);
  if (Object.hasOwn(OTHERS, plain)) return OTHERS[plain];
  return OBJECT_KINDS.find((kind) => {
    const { one, many } = OBJECT_WORDS[kind];
    return plain === simplify(one) || plain === simplify(many);
  });
}

function simplify(text: string): string {
  return text.replaceAll(/[-_]/g, "").toLowerCase();
}
