import type { PriorityClassRecord } from "@forage/proto/forage/store/v1/store";

/** The properties that a priority class gives to its pods. */
export interface Priority {
  readonly value: number;
  readonly neverPreempts: boolean;
}

/** Kubernetes' built-in classes, which always exist. */
export const BUILT_IN_CLASSES: Readonly<Record<string, PriorityClassRecord>> = {
  "system-cluster-critical": {
    value: 2_000_000_000,
    neverPreempts: false,
    globalDefault: false,
    description: "Pods that the cluster needs.",
  },
  "system-node-critical": {
    value: 2_000_001_000,
    neverPreempts: false,
    globalDefault: false,
    description: "Pods that their node needs; above all others.",
  },
};

export const RESERVED_CLASS_PREFIX = "system-";
/** The largest value of a class. Only built-in classes have higher ones. */
export const MAX_CLASS_VALUE = 1_000_000_000;

interface NamedClass {
  readonly name: string;
  readonly record: PriorityClassRecord;
}

/**
 * Returns the priority of the class with this name. Without a name, returns that of the default class, or 0. Undefined:
 * there is no such class. Pure.
 */
export function priorityOf(name: string, classes: readonly NamedClass[]): Priority | undefined {
  if (name === "") return defaultOf(classes) ?? { value: 0, neverPreempts: false };
  return BUILT_IN_CLASSES[name] ?? classes.find((it) => it.name === name)?.record;
}

/**
 * Returns the default class. Two of them can only exist after concurrent calls; then, as in Kubernetes, the lower value
 * counts.
 */
function defaultOf(classes: readonly NamedClass[]): Priority | undefined {
  return classes
    .map(({ record }) => record)
    .filter(({ globalDefault }) => globalDefault)
    .sort((a, b) => a.value - b.value)[0];
}
