import { isDeepStrictEqual } from "node:util";
import type { GatewayCertificate, GatewayHost, ServiceState } from "@forage/proto/forage/agent/v1/agent";
import type { ConfigLoader, Outcome } from "./config-loader.ts";
import { endsTls } from "./envoy/virtual-hosts.ts";
import { problemOfCertificate, problemOfHost } from "./host-problems.ts";
import type { GatewayView } from "./known-gateway.ts";
import { readRejectedHosts, writeRejectedHosts } from "./rejected-hosts.ts";
import { type RenderOptions, renderGateway } from "./render-gateway.ts";

type Hosts = ReadonlyMap<string, GatewayHost>;
type Services = ReadonlyMap<string, ServiceState>;

/** A part of the desired configuration that is not applied. */
export interface Problem {
  /** The host's name. Empty if the problem does not concern a single host. */
  readonly hostname: string;
  readonly message: string;
}

interface Desired {
  readonly hosts: Hosts;
  readonly certificates: ReadonlyMap<string, GatewayCertificate>;
  /** The reported problems, in the order of hosts. */
  readonly problems: readonly Problem[];
}

/**
 * The limit of attempts to find the hosts at fault. After that, each rejected group of hosts keeps its previous
 * configuration.
 */
const TRIES_MAX = 64;

/**
 * Tracks the hosts that Envoy has applied, and their configuration. When Envoy rejects a configuration, this finds the
 * hosts at fault by bisection. They keep their previous configuration, and all others change.
 */
export class ConfigApplier {
  readonly #loader: ConfigLoader;
  readonly #render: RenderOptions;
  #accepted: Hosts = new Map();
  /** The rejected hosts as stored on disk, to avoid repeated writes. */
  #storedRejections = "";
  /** The last usable certificates by id. */
  #certificates: ReadonlyMap<string, GatewayCertificate> = new Map();
  /** The rejected hosts with Envoy's reason. They are retried when they change. */
  readonly #refused = new Map<string, { readonly host: GatewayHost; readonly reason: string }>();

  /**
   * Whether everything but rejected hosts is applied. If false, the cause may disappear by itself, so the application
   * is retried.
   */
  complete = true;

  constructor(loader: ConfigLoader, render: RenderOptions) {
    this.#loader = loader;
    this.#render = render;
  }

  /**
   * Adopts a proxy that an earlier agent configured. Hosts that the earlier agent had rejected stay as they were and
   * aren't retried.
   */
  async adopt(): Promise<void> {
    const accepted = new Map<string, GatewayHost>();
    for (const { host, reason, former } of await readRejectedHosts(this.#render.places.rejectedHosts)) {
      this.#refused.set(host.hostname, { host, reason });
      if (former !== undefined) accepted.set(host.hostname, former);
    }
    this.#accepted = accepted;
    this.#storedRejections = [...this.#refused.keys()].join();
    await this.#loader.adopt();
  }

  /**
   * Prepares the files that Envoy reads at its start. A configuration that another Envoy accepted may fail in this one.
   */
  async prepare(view: GatewayView, services: Services): Promise<void> {
    this.#accepted = new Map();
    this.#refused.clear();
    const desired = this.#desiredOf(view);
    await this.#loader.prepare(renderGateway(this.#at(view, desired), desired.hosts, this.#render), services);
  }

  /** Applies everything that Envoy accepts and returns the rest with the reasons. Rejects if Envoy doesn't respond. */
  async apply(view: GatewayView, services: Services): Promise<readonly Problem[]> {
    const desired = this.#desiredOf(view);
    const load = (hosts: Hosts): Promise<Outcome> =>
      this.#loader.load(renderGateway(this.#at(view, desired), hosts, this.#render), services);
    for (const [name, { host }] of this.#refused)
      if (!isDeepStrictEqual(desired.hosts.get(name), host)) this.#refused.delete(name);
    const settled = this.#settled(desired.hosts);
    const news = [...desired.hosts.values()].filter(
      (host) => !this.#refused.has(host.hostname) && settled.get(host.hostname) !== host,
    );
    const outcome = await this.#join(settled, news, load);
    await this.#storeRejections();
    const refused = [...this.#refused].map(([hostname, { reason }]) => ({
      hostname,
      message: reason,
    }));
    return [...desired.problems, ...refused, ...outcome];
  }

  async #storeRejections(): Promise<void> {
    const held = [...this.#refused.values()].map((it) => {
      return { ...it, former: this.#accepted.get(it.host.hostname) };
    });
    if (held.length === 0 && this.#storedRejections === "") return;
    this.#storedRejections = [...this.#refused.keys()].join();
    await writeRejectedHosts(this.#render.places.rejectedHosts, held);
  }

  #desiredOf(view: GatewayView): Desired {
    const desired = desiredOf(view, this.#certificates);
    this.#certificates = desired.certificates;
    return desired;
  }

  #at(view: GatewayView, { certificates }: Desired): Pick<GatewayView, "certificates" | "challenges"> {
    return { certificates, challenges: view.challenges };
  }

  /**
   * Returns the hosts that are still desired, in the form that Envoy accepted. Unchanged hosts are the same objects as
   * in the view.
   */
  #settled(desired: Hosts): Map<string, GatewayHost> {
    const settled = new Map<string, GatewayHost>();
    for (const [name, host] of desired) {
      const accepted = this.#accepted.get(name);
      if (accepted !== undefined) settled.set(name, isDeepStrictEqual(accepted, host) ? host : accepted);
    }
    return settled;
  }

  async #join(
    settled: Map<string, GatewayHost>,
    news: readonly GatewayHost[],
    load: (hosts: Hosts) => Promise<Outcome>,
  ): Promise<Problem[]> {
    let good: Hosts = settled;
    let tries = 0;
    const groups = [news];
    let last: Outcome | undefined;
    for (let group = groups.pop(); group !== undefined; group = groups.pop()) {
      if (last !== undefined && group.length === 0) continue;
      const candidate = new Map([...good, ...group.map((host) => [host.hostname, host] as const)]);
      last = await load(candidate);
      tries++;
      if (last.type === "applied" || last.subscription === "listeners") good = candidate;
      else if (group.length === 0 || last.subscription === "clusters") break;
      else if (group.length === 1 || tries >= TRIES_MAX)
        for (const host of group) this.#refused.set(host.hostname, { host, reason: last.reason });
      else groups.push(group.slice(group.length / 2), group.slice(0, group.length / 2));
    }
    // The files on disk must match the applied configuration, because Envoy may restart from them.
    if (last?.type === "refused" && isOfRoutes(last)) last = await load(good);
    this.#accepted = good;
    this.complete = last?.type !== "refused";
    return last?.type === "refused" ? [{ hostname: "", message: last.reason }] : [];
  }
}

/** Reports whether the outcome concerns a file that is generated from users' routes, host by host. */
function isOfRoutes(outcome: Outcome): boolean {
  return outcome.type === "refused" && (outcome.subscription === "http" || outcome.subscription === "https");
}

function desiredOf(view: GatewayView, former: ReadonlyMap<string, GatewayCertificate>): Desired {
  const problems: Problem[] = [];
  const hosts = new Map<string, GatewayHost>();
  const certificates = new Map<string, GatewayCertificate>();
  const bad = new Map<string, string>();
  for (const [id, certificate] of view.certificates) {
    const problem = problemOfCertificate(certificate);
    const used = problem === undefined ? certificate : former.get(id);
    if (used !== undefined) certificates.set(id, used);
    if (problem !== undefined) bad.set(id, problem);
  }
  for (const [name, host] of [...view.hosts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const problem = problemOfHost(host);
    if (problem === undefined) hosts.set(name, host);
    else problems.push({ hostname: name, message: problem });
    if (!endsTls(host)) continue;
    const { certificate } = host;
    const usable = certificates.has(certificate);
    const why = bad.get(certificate) ?? (usable ? undefined : "it has not arrived");
    if (why === undefined) continue;
    const effect = usable ? "the previous certificate stays in use" : "HTTPS is off";
    problems.push({ hostname: name, message: `${effect}: certificate ${certificate}: ${why}` });
  }
  return { hosts, certificates, problems };
}
