import { type Cidr, formatIp, overlaps, parseCidr } from "../../common/src/ip.ts";
import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";

// A part of 10.0.0.0/8 that few sites use: sites start at 10.0, and home routers don't get this far.
const POOL = "10.64.0.0/10";
// 4,094 addresses, more than the pods that one host runs.
const POD_BITS = 20;

/** Returns a /20 that overlaps no route of the host. It is the same for the same `seed` as long as it is free. */
export async function findPodCidr(seed: string): Promise<string> {
  const { stdout } = await run("ip", ["-json", "-4", "route", "show", "table", "all"]);
  const routes = (JSON.parse(stdout || "[]") as { dst?: string }[]).flatMap(({ dst }) => dst ?? []);
  return choosePodCidr(routes, seed);
}

export function choosePodCidr(routes: readonly string[], seed: string): string {
  const taken = routes.flatMap((route) => parseCidr(route) ?? []);
  const pool = cidrOf(POOL);
  const count = 2 ** (POD_BITS - pool.prefix);
  const size = 2n ** BigInt(32 - POD_BITS);
  const offset = [...seed].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % count, 0);
  for (let step = 0; step < count; step++) {
    const value = pool.first + BigInt((offset + step) % count) * size;
    const choice = cidrOf(`${formatIp({ family: 4, value })}/${POD_BITS}`);
    if (!taken.some((route) => overlaps(choice, route))) return choice.text;
  }
  throw new SetupError("PORT_TAKEN", "the host's routes leave no free range for pods", "see `ip route`");
}

/**
 * Returns the addresses for services of the instance with this pod range. Instances on one host must not share them
 * either.
 */
export function virtualIpsBeside(podCidr: string): string {
  const { first, prefix } = cidrOf(podCidr);
  // The other end of 10.0.0.0/8.
  return `${formatIp({ family: 4, value: first + 128n * 2n ** 16n })}/${prefix}`;
}

function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text);
  if (cidr === undefined)
    throw new SetupError("BAD_USAGE", `${text} is no network`, "write it as 10.64.0.0/20");
  return cidr;
}
