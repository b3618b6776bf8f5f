/** An IANA name, such as Europe/Copenhagen or UTC. Excludes offsets, and the host's own "Local". */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;

/** Returns what is wrong with the time zone. Undefined: it is valid. Empty means UTC. */
export function timeZoneProblem(zone: string): string | undefined {
  if (zone === "") return undefined;
  const known = zone.length <= 64 && ZONE_NAME.test(zone) && isKnown(zone);
  return known ? undefined : "is not a time zone such as Europe/Copenhagen";
}

function isKnown(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
