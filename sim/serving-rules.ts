import { serviceAddressKey } from "../coordinator/src/model/keys.ts";
import type { StoreRules } from "./fleet/store-rules.ts";
import type { ServingHost, SimLan } from "./serving-host.ts";
import { readCertificate } from "./sim-issuer.ts";

/** The sum of an address's lease and the longest time that a host needs to find out that another one answers for it. */
export const OVERLAP_MS = 45_000;

export interface ServingWorld {
  readonly lan: SimLan;
  readonly rules: Pick<StoreRules, "state">;
  readonly nowMs: () => number;
  /** Names of the nodes that are gateways. */
  readonly gateways: ReadonlySet<string>;
  readonly namespace: string;
  readonly service: string;
  readonly hostname: string;
}

/** Rules for what hosts serve at any moment. */
export class ServingRules {
  readonly #world: ServingWorld;
  /** The time since which more than one host has an address, by address. */
  readonly #shared = new Map<string, number>();

  constructor(world: ServingWorld) {
    this.#world = world;
  }

  /** Returns the rule that is violated now. Must be called every few seconds. */
  broken(): string | undefined {
    const { lan, nowMs } = this.#world;
    for (const host of lan.hosts) {
      const ended = endedCertificate(host, nowMs());
      if (ended !== undefined) return ended;
    }
    return this.#sharedAddress();
  }

  #sharedAddress(): string | undefined {
    const { lan, nowMs } = this.#world;
    const held = lan.hosts.flatMap((host) => host.held());
    const shared = new Set(held.filter((ip, at) => held.indexOf(ip) !== at));
    for (const ip of this.#shared.keys()) if (!shared.has(ip)) this.#shared.delete(ip);
    for (const ip of shared) {
      const sinceMs = this.#shared.get(ip) ?? nowMs();
      this.#shared.set(ip, sinceMs);
      if (nowMs() - sinceMs > OVERLAP_MS) return `${lan.holders(ip).map(nameOf).join(" and ")} hold ${ip}`;
    }
    return undefined;
  }
}

/** Returns a description of what the hosts do not serve as desired; `undefined` if there is nothing. */
export function whatIsNotServed(world: ServingWorld): string | undefined {
  const { lan, gateways } = world;
  for (const host of lan.hosts) {
    if (!host.isUp) return `host ${host.name} is down`;
    const wrong = gateways.has(host.name) ? wrongAt(host, world) : needlessAt(host);
    if (wrong !== undefined) return `${host.name} ${wrong}`;
  }
  return wrongAddress(world);
}

function wrongAt({ proxy }: ServingHost, { namespace, service, hostname, rules, nowMs }: ServingWorld) {
  if (proxy === undefined) return "runs no proxy";
  const host = proxy.hosts.get(hostname);
  if (host === undefined) return `does not serve ${hostname}`;
  const certificate = proxy.certificates.get(host.certificate);
  if (certificate === undefined) return `has no certificate for ${hostname}`;
  const { hostname: certified, endsMs } = readCertificate(certificate);
  if (certified !== hostname) return `serves ${hostname} with a certificate of ${certified}`;
  if (endsMs <= nowMs()) return `serves ${hostname} with a certificate that has ended`;
  const targets = host.rules.flatMap((rule) => rule.backends.map((it) => `${it.namespace}/${it.service}`));
  if (targets.join() !== `${namespace}/${service}`)
    return `leads ${hostname} to ${targets.join() || "nothing"}`;
  const found = proxy.services.get(`${namespace}/${service}`)?.endpoints.map(({ pod }) => pod) ?? [];
  const ready = rules.state
    .podsOfWorkload(`${namespace}/container_service/${service}`)
    .filter(({ record, status }) => status?.ready === true && record.stoppingSince === undefined)
    .map(({ record }) => record.name);
  if (found.sort().join() === ready.sort().join()) return undefined;
  return `leads ${hostname} to [${found.join()}] while [${ready.join()}] are ready`;
}

function needlessAt({ proxy }: ServingHost): string | undefined {
  return proxy === undefined ? undefined : "runs a proxy and is no gateway";
}

function wrongAddress({ lan, rules, namespace, service }: ServingWorld): string | undefined {
  const { loadBalancerIps = [], announcedBy = "" } =
    rules.state.serviceAddresses.get(serviceAddressKey(namespace, service))?.record ?? {};
  const [ip] = loadBalancerIps;
  if (ip === undefined) return "the load balancer has no address";
  const holders = lan.holders(ip).map(nameOf);
  if (holders.join() !== announcedBy) return `[${holders.join()}] hold ${ip}, and ${announcedBy} should`;
  const others = lan.hosts.flatMap((host) => host.held()).filter((it) => it !== ip);
  return others.length === 0 ? undefined : `${others.join(", ")} are held for no service`;
}

function endedCertificate({ name, proxy }: ServingHost, nowMs: number): string | undefined {
  for (const { certificate } of proxy?.hosts.values() ?? []) {
    const served = proxy?.certificates.get(certificate);
    if (served !== undefined && readCertificate(served).endsMs <= nowMs)
      return `${name} serves with a certificate that has ended`;
  }
  return undefined;
}

function nameOf({ name }: ServingHost): string {
  return name;
}
