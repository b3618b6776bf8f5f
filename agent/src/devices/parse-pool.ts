import type { HostDevice } from "../runtime/runtime.ts";
import type { DevicePool, DeviceUnit } from "./devices.ts";

// Kubernetes' names of extended resources: a domain, a slash and a name.
const RESOURCE = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
// nerdctl splits its options at commas and colons.
const PATH = /^\/[^,:"\n\0]{1,4000}$/;
const PERMISSIONS = /^(?=.)r?w?m?$/;
const DEFAULT_PERMISSIONS = "rw";
const RESOURCES_MAX = 64;
const UNITS_MAX = 1_000;
const DEVICES_MAX = 64;

/**
 * Parses the `devices` setting: lists of units by resource name. A unit is a device or a list of devices; a device is a
 * path or `{ path, containerPath, permissions }`. Text is parsed as JSON. @throws Error that describes valid values.
 */
export function parsePool(value: unknown): DevicePool {
  const given = typeof value === "string" ? fromJson(value) : value;
  if (!isMap(given)) throw new Error("resource names with lists of devices");
  const entries = Object.entries(given);
  if (entries.length > RESOURCES_MAX) throw new Error(`at most ${RESOURCES_MAX} resources`);
  return Object.fromEntries(
    entries.map(([name, units]) => {
      if (!RESOURCE.test(name) || /(^|\.)kubernetes\.io\//.test(name)) {
        throw new Error(`named like example.com/gpu, which ${JSON.stringify(name)} is not`);
      }
      if (!Array.isArray(units) || units.length > UNITS_MAX) {
        throw new Error(`${name}: a list of at most ${UNITS_MAX} units`);
      }
      return [name, unitsOf(name, units)];
    }),
  );
}

function unitsOf(name: string, units: readonly unknown[]): readonly DeviceUnit[] {
  const seen = new Map<string, number>();
  return units.map((unit) => {
    const list = Array.isArray(unit) ? unit : [unit];
    if (list.length === 0 || list.length > DEVICES_MAX) {
      throw new Error(`${name}: units of 1 to ${DEVICES_MAX} devices`);
    }
    const devices = list.map((it) => deviceOf(name, it));
    const described = devices.map((it) => it.hostPath).join("+");
    // Units may be equal, so that several containers can use one device.
    const count = (seen.get(described) ?? 0) + 1;
    seen.set(described, count);
    return { id: count === 1 ? described : `${described}#${count}`, devices };
  });
}

function deviceOf(name: string, value: unknown): HostDevice {
  const given = typeof value === "string" ? { path: value } : value;
  if (!isMap(given)) throw new Error(`${name}: devices, each a path or path, containerPath and permissions`);
  const { path, containerPath = path, permissions = DEFAULT_PERMISSIONS, ...others } = given;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new Error(`${name}: without ${JSON.stringify(unknown)}, which is not a known key`);
  if (typeof permissions !== "string" || !PERMISSIONS.test(permissions)) {
    throw new Error(`${name}: with permissions of r, w and m, in this order`);
  }
  return { hostPath: pathOf(name, path), containerPath: pathOf(name, containerPath), permissions };
}

function pathOf(name: string, path: unknown): string {
  if (typeof path === "string" && PATH.test(path) && !path.split("/").includes("..")) return path;
  throw new Error(`${name}: with absolute paths, without comma, colon or quote`);
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("JSON, when it is given as text");
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
