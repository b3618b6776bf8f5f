import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";

// Part of 10.0.0.0/8 that sites seldom use: they begin at 10.0 and home routers never reach so far.
const POOL_BASE = toNumber("10.64.0.0");
const POOL_BITS = 10;
// 4,094 addresses: more pods than one host runs.
const POD_BITS = 20;

/** A /20 that overlaps no route of the host, the same for the same `seed` as long as it is free. */
export async function findPodCidr(seed: string): Promise<string> {
  const { stdout } = await run("ip", ["-json", "-4", "route", "show", "table", "all"]);
  const routes = (JSON.parse(stdout || "[]") as { dst?: string }[]).flatMap(({ dst }) => dst ?? []);
  return choosePodCidr(routes, seed);
}

export function choosePodCidr(routes: readonly string[], seed: string): string {
  const taken = routes.filter((route) => route !== "default").map(parseRange);
  const count = 2 ** (POD_BITS - POOL_BITS);
  const size = 2 ** (32 - POD_BITS);
  const offset = [...seed].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % count, 0);
  for (let step = 0; step < count; step++) {
    const first = POOL_BASE + ((offset + step) % count) * size;
    const last = first + size - 1;
    if (!taken.some((range) => first <= range.last && range.first <= last))
      return `${toText(first)}/${POD_BITS}`;
  }
  throw new SetupError("PORT_TAKEN", "the host's routes leave no free range for pods", "see `ip route`");
}

/** Addresses for the services of the instance whose pods are there: instances on one host must not share them either. */
export function virtualIpsBeside(podCidr: string): string {
  const [address = "", bits] = podCidr.split("/");
  // The other end of 10.0.0.0/8.
  return `${toText(toNumber(address) + 128 * 2 ** 16)}/${bits}`;
}

function parseRange(route: string): { first: number; last: number } {
  const [address = "", bits = "32"] = route.split("/");
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(toNumber(address) / size) * size;
  return { first, last: first + size - 1 };
}

function toNumber(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

function toText(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}
