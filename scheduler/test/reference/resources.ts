import type { ContainerSpec, NodeSpec, PodSpec } from "../../src/types.ts";

/** Parses billionths with exact fractions: numerator over 10^20. Slow and simple. */
function nano(text: string): bigint {
  const match = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+)|([numkMGTPE]i?|Ki)?)$/.exec(text);
  if (match === null) throw new Error(`quantity ${text}`);
  const [, , whole = "", fraction = "", exponent, suffix = ""] = match;
  const decimals: Record<string, number> = {
    n: -9,
    u: -6,
    m: -3,
    "": 0,
    k: 3,
    M: 6,
    G: 9,
    T: 12,
    P: 15,
    E: 18,
  };
  const binaries: Record<string, bigint> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n };
  let scaled = BigInt(whole + fraction) * 10n ** BigInt(50 - fraction.length);
  const binary = binaries[suffix];
  if (binary !== undefined) scaled *= 2n ** binary;
  const power = exponent === undefined ? (decimals[suffix] ?? 0) : Number(exponent);
  scaled = power >= 0 ? scaled * 10n ** BigInt(power) : scaled / 10n ** BigInt(-power);
  return ceil(scaled, 10n ** 41n);
}

function ceil(a: bigint, b: bigint): bigint {
  return a / b + (a % b === 0n ? 0n : 1n);
}

export function units(resource: string, amount: bigint): number {
  return Number(ceil(amount, resource === "cpu" ? 10n ** 6n : 10n ** 9n));
}

function containerNeeds(container: ContainerSpec, resource: string, missing: bigint): bigint {
  const text = container.requests?.[resource] ?? container.limits?.[resource];
  return text === undefined ? missing : nano(text);
}

/** Returns what the pod needs of one resource, in thousandths of a cpu or whole units. */
export function needs(pod: PodSpec, resource: string, defaulted = false): number {
  const missing = !defaulted
    ? 0n
    : resource === "cpu"
      ? nano("100m")
      : resource === "memory"
        ? nano("200Mi")
        : 0n;
  let running = pod.containers.reduce((sum, c) => sum + containerNeeds(c, resource, missing), 0n);
  let sidecars = 0n;
  let peak = 0n;
  for (const init of pod.initContainers ?? []) {
    const own = containerNeeds(init, resource, missing);
    if (init.restartPolicy === "Always") {
      running += own;
      sidecars += own;
      if (sidecars > peak) peak = sidecars;
    } else if (own + sidecars > peak) {
      peak = own + sidecars;
    }
  }
  return units(resource, running > peak ? running : peak);
}

export function resourceNames(pod: PodSpec): string[] {
  const names = [...pod.containers, ...(pod.initContainers ?? [])].flatMap((c) => [
    ...Object.keys(c.requests ?? {}),
    ...Object.keys(c.limits ?? {}),
  ]);
  return [...new Set(names)];
}

export function capacity(node: NodeSpec, resource: string): number {
  return units(resource, nano(node.allocatable[resource] ?? "0"));
}

export function used(pods: readonly PodSpec[], resource: string, defaulted = false): number {
  return pods.reduce((sum, pod) => sum + needs(pod, resource, defaulted), 0);
}
