import { createHash } from "node:crypto";
import type { ServiceAddressRecord, ServiceNodePort } from "@forage/proto/forage/store/v1/store";
import type { ServicePort } from "@forage/proto/forest/v1/forage";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { IpRange } from "./ip-range.ts";

/** A service that is there. */
export interface AddressedService {
  readonly namespace: string;
  readonly name: string;
  /** "ClusterIP", "NodePort" or "Headless". */
  readonly type: string;
  readonly ports: readonly ServicePort[];
}

export interface AddressInput {
  readonly services: readonly AddressedService[];
  readonly records: readonly ServiceAddressRecord[];
  readonly virtualIps: IpRange;
  readonly nodePorts: { readonly first: number; readonly last: number };
  readonly nowMs: number;
}

export type AddressStep =
  | { readonly type: "write"; readonly record: ServiceAddressRecord }
  /** Nobody has used it for long. */
  | { readonly type: "forget"; readonly namespace: string; readonly name: string }
  /** There is no address or port left, or another service has it. */
  | { readonly type: "refuse"; readonly namespace: string; readonly name: string; readonly why: string };

/** Longer than names, connections and caches of clients live. */
export const keepReleasedMs = 3_600_000;

/** Pure: who is to have which address. A service keeps what it has, and gets it back if it comes again soon. */
export function planAddresses(input: AddressInput): AddressStep[] {
  const records = new Map(input.records.map((record) => [`${record.namespace}/${record.name}`, record]));
  const services = new Map(
    input.services.map((service) => [`${service.namespace}/${service.name}`, service]),
  );
  const taken = new Taken(input.records);
  const steps: AddressStep[] = [];
  for (const [key, record] of records) {
    const service = services.get(key);
    if (service !== undefined && service.type !== "Headless") continue;
    const releasedMs = toEpochMs(record.releasedAt);
    const { namespace, name } = record;
    if (releasedMs === undefined)
      steps.push({ type: "write", record: { ...record, releasedAt: toTimestamp(input.nowMs) } });
    else if (releasedMs + keepReleasedMs <= input.nowMs) steps.push({ type: "forget", namespace, name });
  }
  for (const [key, service] of services) {
    if (service.type !== "Headless") steps.push(...stepsFor(service, records.get(key), taken, input));
  }
  return steps;
}

/** When time alone can change the plan next; undefined: never. */
export function nextReleaseMs(records: readonly ServiceAddressRecord[]): number | undefined {
  const times = records.flatMap(({ releasedAt }) => {
    const releasedMs = toEpochMs(releasedAt);
    return releasedMs === undefined ? [] : [releasedMs + keepReleasedMs];
  });
  return times.length === 0 ? undefined : Math.min(...times);
}

/** What is in use or was until lately. */
class Taken {
  readonly ips = new Set<string>();
  readonly nodePorts = new Map<string, string>();

  constructor(records: readonly ServiceAddressRecord[]) {
    for (const record of records) this.add(record);
  }

  add({ namespace, name, virtualIps, nodePorts }: ServiceAddressRecord): void {
    for (const ip of virtualIps) this.ips.add(ip);
    for (const { nodePort, protocol } of nodePorts)
      this.nodePorts.set(`${nodePort}/${protocol}`, `${namespace}/${name}`);
  }
}

function stepsFor(
  service: AddressedService,
  record: ServiceAddressRecord | undefined,
  taken: Taken,
  input: AddressInput,
): AddressStep[] {
  const { namespace, name } = service;
  const refuse = (why: string): AddressStep => ({ type: "refuse", namespace, name, why });
  const steps: AddressStep[] = [];
  const seed = seedOf(`${namespace}/${name}`);
  const ip = record?.virtualIps[0] ?? freeIp(input.virtualIps, seed, taken);
  if (ip === undefined) steps.push(refuse(`no virtual IP is left in ${input.virtualIps.text}`));
  const { nodePorts, problems } = nodePortsFor(service, record, taken, input);
  steps.push(...problems.map(refuse));
  const next: ServiceAddressRecord = {
    namespace,
    name,
    virtualIps: ip === undefined ? [] : [ip],
    nodePorts,
    releasedAt: undefined,
    loadBalancerIps: [],
    announcedBy: "",
    announcedAlone: false,
  };
  if (record === undefined || !sameRecord(record, next)) {
    taken.add(next);
    steps.push({ type: "write", record: next });
  }
  return steps;
}

function nodePortsFor(
  { namespace, name, type, ports }: AddressedService,
  record: ServiceAddressRecord | undefined,
  taken: Taken,
  { nodePorts: { first, last } }: AddressInput,
): { readonly nodePorts: ServiceNodePort[]; readonly problems: readonly string[] } {
  const problems: string[] = [];
  if (type !== "NodePort") return { nodePorts: [], problems };
  const own = `${namespace}/${name}`;
  const size = last - first + 1;
  const used = new Set<string>();
  const free = (port: number, protocol: string): boolean => {
    const owner = taken.nodePorts.get(`${port}/${protocol}`);
    return (owner === undefined || owner === own) && !used.has(`${port}/${protocol}`);
  };
  const nodePorts = ports.flatMap(({ port, protocol: given, nodePort: wanted }): ServiceNodePort[] => {
    const protocol = given === "" ? "TCP" : given;
    const before = record?.nodePorts.find((it) => it.port === port && it.protocol === protocol)?.nodePort;
    const seed = seedOf(`${own}/${port}/${protocol}`);
    const candidates =
      wanted !== 0 ? [wanted] : [...(before === undefined ? [] : [before]), ...around(seed, size, first)];
    const nodePort = candidates.find((candidate) => free(candidate, protocol));
    if (nodePort === undefined) {
      problems.push(
        wanted === 0
          ? `no node port is left in ${first}-${last}`
          : `node port ${wanted}/${protocol} belongs to service ${taken.nodePorts.get(`${wanted}/${protocol}`)}`,
      );
      return [];
    }
    used.add(`${nodePort}/${protocol}`);
    taken.nodePorts.set(`${nodePort}/${protocol}`, own);
    return [{ port, protocol, nodePort }];
  });
  return { nodePorts, problems };
}

function* around(seed: number, size: number, first: number): Generator<number> {
  for (let step = 0; step < size; step++) yield first + ((seed + step) % size);
}

/** From a place that its name gives, so that a service that is made anew has good chances to get its address again. */
function freeIp(range: IpRange, seed: number, taken: Taken): string | undefined {
  for (let step = 0; step < range.size; step++) {
    const ip = range.at((seed + step) % range.size);
    if (taken.ips.has(ip)) continue;
    taken.ips.add(ip);
    return ip;
  }
  return undefined;
}

function seedOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE(0);
}

function sameRecord(a: ServiceAddressRecord, b: ServiceAddressRecord): boolean {
  const text = ({ virtualIps, nodePorts, releasedAt }: ServiceAddressRecord): string =>
    JSON.stringify([virtualIps, nodePorts, releasedAt !== undefined]);
  return text(a) === text(b);
}
