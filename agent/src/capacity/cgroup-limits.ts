import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type CgroupPlaces, parsePlaces } from "../runtime/cgroup/parse-cgroup.ts";

/** The limits of the machine's own cgroup. Undefined: no limit. */
export interface CgroupLimits {
  readonly cpuMilli?: number;
  readonly memoryBytes?: number;
}

/** v1 represents "no limit" by the largest page-aligned number. Real limits are far below. */
const MEMORY_UNLIMITED_BYTES = 2 ** 60;

/**
 * Returns the limits on the cgroup of process 1 and its ancestors. A plain host has none; inside a container or nspawn
 * machine they are the machine's own. The agent's own cgroup is not used, because the limits of the agent's unit don't
 * apply to pods.
 */
export async function readCgroupLimits(cgroupRoot: string, procDir: string): Promise<CgroupLimits> {
  const places = parsePlaces(await readFile(join(procDir, "1/cgroup"), "utf8").catch(() => "0::/"));
  const cpu = await Promise.all([
    cpuQuotaV2(cgroupRoot, places),
    cpuQuotaV1(cgroupRoot, places),
    cpuSet(cgroupRoot, places),
  ]);
  const memory = await Promise.all([memoryV2(cgroupRoot, places), memoryV1(cgroupRoot, places)]);
  const cpuMilli = least(cpu.flat());
  const memoryBytes = least(memory.flat());
  return {
    ...(cpuMilli === undefined ? {} : { cpuMilli }),
    ...(memoryBytes === undefined || memoryBytes >= MEMORY_UNLIMITED_BYTES ? {} : { memoryBytes }),
  };
}

function cpuQuotaV2(root: string, { v2 }: CgroupPlaces): Promise<(number | undefined)[]> {
  return each(root, v2, async (dir) => {
    const [quota, period] = (await text(dir, "cpu.max")).split(" ");
    return share(quota, period);
  });
}

function cpuQuotaV1(root: string, { v1 }: CgroupPlaces): Promise<(number | undefined)[]> {
  return each(join(root, "cpu"), v1.get("cpu"), async (dir) =>
    share(await text(dir, "cpu.cfs_quota_us"), await text(dir, "cpu.cfs_period_us")),
  );
}

async function cpuSet(root: string, { v1, v2 }: CgroupPlaces): Promise<(number | undefined)[]> {
  const read = (name: string) => async (dir: string) => {
    const cpus = countCpus(await text(dir, name));
    return cpus === 0 ? undefined : cpus * 1_000;
  };
  const sets = [
    each(root, v2, read("cpuset.cpus.effective")),
    each(join(root, "cpuset"), v1.get("cpuset"), read("cpuset.effective_cpus")),
    each(join(root, "cpuset"), v1.get("cpuset"), read("cpuset.cpus")),
  ];
  return (await Promise.all(sets)).flat();
}

function memoryV2(root: string, { v2 }: CgroupPlaces): Promise<(number | undefined)[]> {
  return each(root, v2, async (dir) => positive(await text(dir, "memory.max")));
}

function memoryV1(root: string, { v1 }: CgroupPlaces): Promise<(number | undefined)[]> {
  return each(join(root, "memory"), v1.get("memory"), async (dir) =>
    positive(await text(dir, "memory.limit_in_bytes")),
  );
}

/** Reads a value of a cgroup and of each of its ancestors, up to the root of the mounted hierarchy. */
function each<Value>(
  root: string,
  path: string | undefined,
  read: (dir: string) => Promise<Value>,
): Promise<Value[]> {
  if (path === undefined) return Promise.resolve([]);
  const parts = path.split("/").filter((part) => part !== "" && part !== "..");
  const dirs = Array.from({ length: parts.length + 1 }, (_, depth) => join(root, ...parts.slice(0, depth)));
  return Promise.all(dirs.map(read));
}

async function text(dir: string, name: string): Promise<string> {
  return (await readFile(join(dir, name), "utf8").catch(() => "")).trim();
}

function share(quota: string | undefined, period: string | undefined): number | undefined {
  const [used, of] = [positive(quota), positive(period)];
  return used === undefined || of === undefined ? undefined : Math.floor((used / of) * 1_000);
}

// "max", -1 and an empty file all mean that there is no limit.
function positive(value: string | undefined): number | undefined {
  const number = Number(value || "max");
  return number > 0 ? number : undefined;
}

/** Returns the number of entries of a list such as `0-3,8`. */
function countCpus(list: string): number {
  return list.split(",").reduce((count, range) => {
    const [first, last = first] = range.split("-");
    return first === undefined || first === "" ? count : count + Number(last) - Number(first) + 1;
  }, 0);
}

function least(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
