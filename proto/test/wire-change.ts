/** The packages that others define or implement, so they can't be changed. */
export const FROZEN_PACKAGES = [
  "forest.v1",
  "hashicorp.nomad.plugins.drivers.proto",
  "io.linkerd.proxy.destination",
  "wsman",
] as const;

/** The lines of describeWire that were removed and added. A changed element is in both lists. */
export interface WireChange {
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

export function compareWire(pinned: readonly string[], current: readonly string[]): WireChange {
  const before = new Set(pinned);
  const after = new Set(current);
  return {
    removed: pinned.filter((line) => !after.has(line)),
    added: current.filter((line) => !before.has(line)),
  };
}

/** Returns the reason why the change is rejected. Empty if it is accepted. */
export function objections({ removed, added }: WireChange, allow: { breaking: boolean }): string[] {
  const frozen = FROZEN_PACKAGES.filter((name) => [...removed, ...added].some((line) => isOf(name, line)));
  return [
    ...frozen.map((name) => `${name} is a contract others implement as it is: undo the change.`),
    ...(removed.length > 0 && !allow.breaking
      ? [
          "Removed, renumbered or changed elements break peers and data of earlier versions. Add a new field and reserve the old one.",
        ]
      : []),
  ];
}

/** Returns the message of a failing test: the change and what to do about it. Empty if nothing changed. */
export function explain(change: WireChange): string {
  if (change.removed.length + change.added.length === 0) {
    return "";
  }
  const reasons = objections(change, { breaking: false });
  return [
    "The wire has changed:",
    ...change.removed.map((line) => `  - ${line}`),
    ...change.added.map((line) => `  + ${line}`),
    ...reasons,
    ...(reasons.length === 0 ? ["If these additions are meant: npm run wire:accept -w proto"] : []),
  ].join("\n");
}

function isOf(packageName: string, line: string): boolean {
  const element = line.split(" ")[1] ?? "";
  return element === packageName || element.startsWith(`${packageName}.`);
}
