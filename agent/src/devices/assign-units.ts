import { DeviceError, type DevicePool, type DeviceRequest, type DeviceUnit } from "./devices.ts";

/** A unit that is assigned to a container. */
export interface DeviceAssignment {
  readonly container: string;
  readonly init: boolean;
  readonly resource: string;
  readonly unit: string;
}

export interface UnitsInUse {
  /** The units assigned to the requesting pod. */
  readonly own: readonly DeviceAssignment[];
  /** The units assigned to all other pods. */
  readonly others: readonly DeviceAssignment[];
}

/**
 * Assigns units to a container: first its former ones, then those that only its pod uses, then free ones. Pure.
 * @returns the container's new assignments. @throws DeviceError if there are too few units.
 */
export function assignUnits(
  pool: DevicePool,
  isPresent: (unit: DeviceUnit) => boolean,
  { container, init, desired }: DeviceRequest,
  inUse: UnitsInUse,
): readonly DeviceAssignment[] {
  return Object.entries(desired).flatMap(([resource, count]) => {
    const declared = Object.hasOwn(pool, resource) ? (pool[resource] ?? []) : [];
    if (declared.length === 0)
      throw new DeviceError(`this host has no ${resource}: see devices of its agent`);
    const units = declared.filter(isPresent);
    const rank = ranking(resource, { container, init }, inUse);
    const usable = units.filter((it) => rank(it.id) !== undefined);
    if (usable.length < count) throw new DeviceError(shortage(resource, count, declared, units, usable));
    const chosen = usable.toSorted((a, b) => (rank(a.id) ?? 0) - (rank(b.id) ?? 0)).slice(0, count);
    return chosen.map(({ id }) => ({ container, init, resource, unit: id }));
  });
}

/** Returns the preference of a unit, 0 first. Undefined if another container has it. */
function ranking(
  resource: string,
  { container, init }: Pick<DeviceRequest, "container" | "init">,
  { own, others }: UnitsInUse,
): (unit: string) => number | undefined {
  const taken = new Set(others.filter((it) => it.resource === resource).map((it) => it.unit));
  return (unit) => {
    if (taken.has(unit)) return undefined;
    const holders = own.filter((it) => it.resource === resource && it.unit === unit);
    if (holders.some((it) => it.container === container)) return 0;
    if (holders.length === 0) return 2;
    return init || holders.every((it) => it.init) ? 1 : undefined;
  };
}

function shortage(
  resource: string,
  count: number,
  declared: readonly DeviceUnit[],
  present: readonly DeviceUnit[],
  usable: readonly DeviceUnit[],
): string {
  const missing = declared.length - present.length;
  const held = present.length - usable.length;
  return (
    `${count} ${resource} are needed and ${usable.length} are free: ` +
    `of ${declared.length}, ${held} are held by other containers and ${missing} are missing on the host`
  );
}
