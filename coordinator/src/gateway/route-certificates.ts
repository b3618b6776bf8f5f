import { messageOf } from "@forage/common/message-of";
import { objectKey } from "../model/keys.ts";
import type { ObjectName } from "../model/object-name.ts";
import type { Vault } from "../objects/vault.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { CertificateSource } from "./certificate-source.ts";
import {
  CHAIN_KEY,
  type ParsedCertificate,
  PRIVATE_KEY_KEY,
  parseCertificate,
} from "./parsed-certificate.ts";
import type { Route } from "./route.ts";
import { type CertificateProblem, type CertificateState, certificateIdOf } from "./tls.ts";

export interface RouteCertificatesOptions {
  readonly state: ClusterView;
  readonly vault: Pick<Vault, "open">;
  readonly source: CertificateSource;
}

interface Parsed {
  /** The version of the secret. */
  readonly version: string;
  readonly result: ParsedCertificate | CertificateProblem;
}

/**
 * Looks up the certificates of routes: secrets in the route's namespace, or certificates of the
 * cluster's issuer. Each is parsed once.
 */
export class RouteCertificates {
  readonly #options: RouteCertificatesOptions;
  readonly #parsed = new Map<string, Parsed>();
  #nextMs: number | undefined;

  constructor(options: RouteCertificatesOptions) {
    this.#options = options;
  }

  /** Starts an evaluation. Must be called before the routes are evaluated again. */
  begin(): void {
    this.#nextMs = undefined;
  }

  /** The next time at which an answer given since `begin` changes without an event. */
  get nextMs(): number | undefined {
    return this.#nextMs;
  }

  /** Drops the parsed content of secrets to which no route refers. */
  keep(secrets: ReadonlySet<string>): void {
    for (const key of this.#parsed.keys()) if (!secrets.has(key)) this.#parsed.delete(key);
  }

  of(route: Route, hostname: string, nowMs: number): CertificateState {
    const id = certificateIdOf(route, hostname);
    const secret = route.tls?.mode === "Terminate" ? route.tls.secret : "";
    if (secret === "") return this.#issued(id, hostname);
    const name = { namespace: route.namespace, kind: "secret", name: secret } as const;
    const parsed = this.#parse(name);
    if ("reason" in parsed) return { type: "missing", ...parsed };
    const { chainPem, keyPem, expiresMs } = parsed;
    for (const dueMs of [parsed.validFromMs, expiresMs])
      if (dueMs > nowMs) this.#nextMs = Math.min(this.#nextMs ?? dueMs, dueMs);
    return {
      type: "ready",
      id,
      chainPem,
      keyPem,
      expiresMs,
      warning: warningOf(parsed, secret, hostname, nowMs),
    };
  }

  #issued(id: string, hostname: string): CertificateState {
    const found = this.#options.source.certificateFor(hostname);
    if (found.type === "pending") {
      const { reason, message } = found;
      return { type: "missing", reason, message: `${hostname}: ${message}` };
    }
    const { chainPem, keyPem, warning } = found;
    const problem =
      warning === undefined ? undefined : { reason: "RenewalFailing", message: `${hostname}: ${warning}` };
    return { type: "ready", id, chainPem, keyPem, expiresMs: found.expiresMs, warning: problem };
  }

  #parse(name: ObjectName): ParsedCertificate | CertificateProblem {
    const { objects } = this.#options.state;
    const version = objects.get(name)?.record.versions[0];
    const key = objectKey(name);
    if (version === undefined) {
      const message = `there is no secret "${name.name}" in namespace "${name.namespace}": forage secret set ${name.name} --from-file ${CHAIN_KEY}=FILE --from-file ${PRIVATE_KEY_KEY}=FILE -n ${name.namespace}`;
      return { reason: "CertificateNotFound", message };
    }
    const known = this.#parsed.get(key);
    if (known?.version === version) return known.result;
    const result = this.#open(name, version);
    this.#parsed.set(key, { version, result });
    return result;
  }

  #open(name: ObjectName, version: string): ParsedCertificate | CertificateProblem {
    const { state, vault } = this.#options;
    const about = `secret "${name.name}"`;
    const stored = state.objects.version(name, version);
    if (stored === undefined)
      return { reason: "CertificateNotFound", message: `${about} has no content yet` };
    let content: Record<string, Uint8Array>;
    try {
      content = vault.open(name, stored);
    } catch {
      return {
        reason: "InvalidCertificate",
        message: `${about} can't be decrypted; see the coordinator's log`,
      };
    }
    try {
      return parseCertificate(content);
    } catch (error) {
      const why = messageOf(error);
      return { reason: "InvalidCertificate", message: `${about}: ${why}` };
    }
  }
}

function warningOf(
  { validFromMs, expiresMs, covers }: ParsedCertificate,
  secret: string,
  hostname: string,
  nowMs: number,
): CertificateProblem | undefined {
  const about = `the certificate in secret "${secret}"`;
  const day = (ms: number): string => new Date(ms).toISOString();
  if (nowMs >= expiresMs)
    return {
      reason: "CertificateExpired",
      message: `${about} expired at ${day(expiresMs)}; clients refuse it`,
    };
  if (nowMs < validFromMs)
    return { reason: "CertificateNotYetValid", message: `${about} is valid from ${day(validFromMs)} on` };
  if (!covers(hostname))
    return { reason: "HostnameMismatch", message: `${about} is not for ${hostname}; clients refuse it` };
  return undefined;
}
