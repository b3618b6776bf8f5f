/* Readers of single settings: each gives the value, or throws an Error that says what it must be. */

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export function wholeNumber(min: number, max: number) {
  return (value: unknown): number => {
    const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max)
      return number;
    throw new Error(`a whole number from ${min} to ${max}`);
  };
}

export function matching(pattern: RegExp, what: string) {
  return (value: unknown): string => {
    if (typeof value === "string" && pattern.test(value)) return value;
    throw new Error(what);
  };
}

export function onOrOff(value: unknown): boolean {
  if (value === true || value === "on") return true;
  // YAML takes a bare `off` for a word, and some write it as a truth value.
  if (value === false || value === "off") return false;
  throw new Error("on or off");
}

export function oneOf<const Value extends string>(allowed: readonly Value[]) {
  return (value: unknown): Value => {
    const found = allowed.find((it) => it === value);
    if (found !== undefined) return found;
    throw new Error(`one of ${allowed.join(", ")}`);
  };
}

export function absolutePath(value: unknown): string {
  if (typeof value === "string" && value.startsWith("/")) return value;
  throw new Error("an absolute path");
}

export function hostPort(value: unknown): HostPort {
  const match =
    typeof value === "string" ? /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value) : null;
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  if (host !== undefined && port >= 1 && port <= 65_535) return { host, port };
  throw new Error("HOST:PORT");
}

// etcd has no more members, and no more coordinators are of use.
const COORDINATORS_MAX = 9;

/** Reads a list of the file, or the text of a flag or variable. */
export function hostPorts(value: unknown): readonly HostPort[] {
  const items: readonly unknown[] =
    typeof value === "string" ? value.split(",") : Array.isArray(value) ? value : [];
  if (items.length === 0 || items.length > COORDINATORS_MAX)
    throw new Error(`a list of 1 to ${COORDINATORS_MAX} HOST:PORT`);
  try {
    return items.map(hostPort);
  } catch {
    throw new Error("a list of HOST:PORT");
  }
}
