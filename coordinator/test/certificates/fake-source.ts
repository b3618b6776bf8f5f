import type { GatewayChallenge } from "@forage/proto/forage/agent/v1/agent";
import type { CertificateSource, SourcedCertificate } from "../../src/gateway/certificate-source.ts";

/** A source with one certificate for all hostnames, which the test sets. */
export class FakeSource implements CertificateSource {
  requested: string[] = [];
  servedTokens: string[] = [];
  readonly listeners = new Set<() => void>();
  #challenges: readonly GatewayChallenge[] = [];
  #certificate: SourcedCertificate = { type: "pending", reason: "Issuing", message: "wait" };

  set(challenges: readonly GatewayChallenge[], certificate = this.#certificate): void {
    this.#challenges = challenges;
    this.#certificate = certificate;
    for (const listener of this.listeners) listener();
  }

  setHostnames(hostnames: ReadonlySet<string>): void {
    this.requested = [...hostnames];
  }

  certificateFor(): SourcedCertificate {
    return this.#certificate;
  }

  challenges(): readonly GatewayChallenge[] {
    return this.#challenges;
  }

  served(tokens: ReadonlySet<string>): void {
    this.servedTokens = [...tokens];
  }

  subscribe(changed: () => void): () => void {
    this.listeners.add(changed);
    return () => this.listeners.delete(changed);
  }
}
