import type { Parsed } from "./values.ts";

/** A set of ports, by number, range or name. */
export interface PortSet {
  readonly ranges: readonly (readonly [number, number])[];
  readonly names: ReadonlySet<string>;
}

/**
 * The ports that Linkerd treats as opaque by default: SMTP (twice), MySQL, Galera, PostgreSQL, Redis, Elasticsearch,
 * Memcached.
 */
export const defaultOpaquePorts: PortSet = {
  ranges: [25, 587, 3306, 4444, 5432, 6379, 9300, 11_211].map((port) => [port, port] as const),
  names: new Set(),
};

/** The limit of items, because each port of a look-up is compared with all of them. */
const MAX_ITEMS = 200;
const PORT_NAME = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** Parses a list of ports such as `25,8000-8100,mysql`. An empty text is an empty set. */
export function parsePorts(text: string): Parsed<PortSet> {
  const items = text.split(",").map((item) => item.trim());
  if (items.length > MAX_ITEMS) return { problem: `must not name more than ${MAX_ITEMS} ports` };
  const ranges: [number, number][] = [];
  const names = new Set<string>();
  for (const item of items) {
    const [, first = "", last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(item) ?? [];
    if (item === "") continue;
    if (first === "" && PORT_NAME.test(item)) names.add(item);
    else if (isRange(Number(first), Number(last))) ranges.push([Number(first), Number(last)]);
    else
      return {
        problem: `"${item.slice(0, 50)}" is not a port (1 to 65535), a range such as 8000-8100 or a name`,
      };
  }
  return { value: { ranges, names } };
}

export function hasPort({ ranges, names }: PortSet, port: number, name: string): boolean {
  return names.has(name) || ranges.some(([first, last]) => port >= first && port <= last);
}

function isRange(first: number, last: number): boolean {
  return first >= 1 && first <= last && last <= 65_535;
}
