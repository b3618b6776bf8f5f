import { isIP } from "node:net";
import { wholeUnitsOf } from "@forage/scheduler";
import { shown } from "./section.ts";
import type { ExtraHost, MountPropagation, TaskDevice, Ulimit } from "./task-options.ts";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)/;
const MAX_DURATION_MS = 24 * 3_600_000;

/** Parses Go's form of a duration: `90s`, `1h30m`. */
export function parseDuration(text: string): number {
  let rest = text;
  let totalMs = 0;
  for (let match = DURATION.exec(rest); match !== null; match = DURATION.exec(rest)) {
    totalMs += Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? 0);
    rest = rest.slice(match[0].length);
  }
  if (rest !== "" || totalMs <= 0 || totalMs > MAX_DURATION_MS)
    throw new Error(`must be a duration up to 24h such as 90s or 5m, and is ${shown(text)}`);
  return totalMs;
}

/** Docker's suffixes in any case, which jobs for other drivers use. They are powers of 1024. */
const DOCKER_SIZE = /^(\d+)([bkmg])b?$/i;
const DOCKER_UNIT: Readonly<Record<string, number>> = { b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };
const MAX_SIZE_BYTES = 2 ** 50;

/** Parses bytes: `67108864`, `64Mi` or Docker's `64m`. */
export function parseSize(text: string): number {
  const docker = DOCKER_SIZE.exec(text);
  const bytes =
    docker === null
      ? quantityOf(text)
      : Number(docker[1]) * (DOCKER_UNIT[docker[2]?.toLowerCase() ?? ""] ?? 0);
  if (bytes === undefined || !Number.isSafeInteger(bytes) || bytes <= 0 || bytes > MAX_SIZE_BYTES)
    throw new Error(`must be a size such as 64Mi, 64m or a number of bytes, and is ${shown(text)}`);
  return bytes;
}

function quantityOf(text: string): number | undefined {
  try {
    return wholeUnitsOf(text);
  } catch {
    return undefined;
  }
}

/** Parses an absolute path without `..` and without the separators of a mount's text form. */
export function parseAbsolutePath(text: string): string {
  if (!text.startsWith("/") || hasControl(text) || text.split("/").includes(".."))
    throw new Error(`must be an absolute path without "..", and is ${shown(text)}`);
  return text.length > 1 ? text.replace(/\/+/g, "/").replace(/\/$/, "") : text;
}

export const PROPAGATIONS: readonly MountPropagation[] = [
  "private",
  "rprivate",
  "slave",
  "rslave",
  "shared",
  "rshared",
];

export function parsePropagation(text: string): MountPropagation {
  return oneOf(PROPAGATIONS)(text);
}

export function oneOf<const Value extends string>(allowed: readonly Value[]) {
  return (text: string): Value => {
    const found = allowed.find((it) => it === text);
    if (found === undefined) throw new Error(`must be one of ${allowed.join(", ")}, and is ${shown(text)}`);
    return found;
  };
}

/** Parses `HOST[:TASK[:PERMISSIONS]]`. */
export function parseDevice(text: string): TaskDevice {
  const [host = "", inTask = host, permissions = "rwm", ...rest] = text.split(":");
  if (rest.length > 0 || !/^(?=[rwm]{1,3}$)(?!.*(.).*\1)/.test(permissions))
    throw new Error(`must be HOST[:TASK[:PERMISSIONS]] with permissions of rwm, and is ${shown(text)}`);
  return { hostPath: parseAbsolutePath(host), containerPath: parseAbsolutePath(inTask), permissions };
}

/** Parses `NAME:ADDRESS`; an IPv6 address may be in brackets. */
export function parseExtraHost(text: string): ExtraHost {
  const colon = text.indexOf(":");
  const name = text.slice(0, Math.max(0, colon));
  const address = text.slice(colon + 1).replace(/^\[(.*)\]$/, "$1");
  if (!isHostName(name) || isIP(address) === 0)
    throw new Error(`must be NAME:ADDRESS with an IP address, and is ${shown(text)}`);
  return { name, address };
}

export function parseHostName(text: string): string {
  if (!isHostName(text) || text.length > 63)
    throw new Error(`must be a host name of at most 63 characters, and is ${shown(text)}`);
  return text;
}

export function isHostName(text: string): boolean {
  return text.length <= 253 && /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/.test(text);
}

export function parseIp(text: string): string {
  if (isIP(text) === 0) throw new Error(`must be an IP address, and is ${shown(text)}`);
  return text;
}

const ULIMITS =
  "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack".split(
    " ",
  );

/** Parses `SOFT[:HARD]`. */
export function parseUlimit(name: string, text: string): Ulimit {
  if (!ULIMITS.includes(name))
    throw new Error(`there is no such limit; the limits are ${ULIMITS.join(", ")}`);
  const match = /^(-1|unlimited|\d{1,15})(?::(-1|unlimited|\d{1,15}))?$/.exec(text);
  const soft = limitOf(match?.[1]);
  const hard = match?.[2] === undefined ? soft : limitOf(match[2]);
  if (soft === undefined || hard === undefined)
    throw new Error(`must be SOFT[:HARD], numbers or -1 for unlimited, and is ${shown(text)}`);
  if (hard !== -1 && (soft === -1 || soft > hard))
    throw new Error(`the soft limit exceeds the hard limit: ${text}`);
  return { name, soft, hard };
}

function limitOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : text === "unlimited" ? -1 : Number(text);
}

function hasControl(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: paths of mounts must not contain these characters
  return /[\u0000-\u001f\u007f]/.test(text);
}
