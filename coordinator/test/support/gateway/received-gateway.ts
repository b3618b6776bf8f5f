import type {
  GatewayCertificate,
  GatewayChallenge,
  GatewayHost,
  GatewayUpdate,
} from "@forage/proto/forage/agent/v1/agent";

/** The gateway state that a node has received. */
export class ReceivedGateway {
  /**
   * The name of the gateway; undefined if nothing was received, and "" if the node is not a
   * gateway.
   */
  gateway: string | undefined;
  version = 0n;
  challenges: readonly GatewayChallenge[] = [];
  readonly hosts = new Map<string, GatewayHost>();
  readonly certificates = new Map<string, GatewayCertificate>();
  /** The number of received messages, including parts. */
  count = 0;
  #partial = false;

  apply(update: GatewayUpdate): void {
    this.count++;
    if (update.full && !this.#partial) {
      this.hosts.clear();
      this.certificates.clear();
    }
    this.#partial = update.more;
    for (const host of update.hosts) this.hosts.set(host.hostname, host);
    for (const hostname of update.removedHosts) this.hosts.delete(hostname);
    for (const certificate of update.certificates) this.certificates.set(certificate.id, certificate);
    for (const id of update.removedCertificates) this.certificates.delete(id);
    if (update.more) return;
    this.gateway = update.gateway;
    this.version = update.version;
    this.challenges = update.challenges;
  }

  /** The whole state, sorted for comparisons. */
  get all(): unknown {
    const sorted = (map: ReadonlyMap<string, unknown>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
    return [this.gateway, sorted(this.hosts), sorted(this.certificates), this.challenges];
  }
}
