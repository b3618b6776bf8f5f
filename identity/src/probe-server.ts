import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { IdentityError } from "./error.ts";
import { spkiPin } from "./pem.ts";

/** The maximum length of a chain. It ends the walk even if issuers form a cycle. */
const MAX_CHAIN = 8;
const DEFAULT_TIMEOUT_MS = 10_000;

export interface ProbeResult {
  /**
   * The pinned root certificate. Trust it for the next connection, which checks the host name and may send the secret.
   */
  readonly rootPem: string;
  /** The matching pin. */
  readonly pin: string;
}

/**
 * Fetches a server's root certificate and compares it with pins. The connection is not verified, and carries only the
 * handshake. @throws IdentityError PIN_MISMATCH: the server has another authority; NO_ROOT_PRESENTED: the chain doesn't
 * end with a self-signed root; CONNECT_FAILED, TIMEOUT: a retry may succeed; ABORTED: the signal was aborted.
 */
export async function probeServer(
  host: string,
  port: number,
  pins: readonly string[],
  signal: AbortSignal,
  timeoutMs = DEFAULT_TIMEOUT_MS,
): Promise<ProbeResult> {
  const root = rootOf(await presentedCertificate(host, port, signal, timeoutMs));
  if (root === undefined) {
    throw new IdentityError("NO_ROOT_PRESENTED", `${host}:${port} doesn't show the root of its certificate`);
  }
  const pin = spkiPin(root);
  if (!pins.includes(pin)) {
    throw new IdentityError(
      "PIN_MISMATCH",
      `${host}:${port} belongs to another authority than the token: it shows ${pin}, expected ${pins.join(" or ")}`,
    );
  }
  return { rootPem: root.toString(), pin };
}

async function presentedCertificate(
  host: string,
  port: number,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<X509Certificate | undefined> {
  if (signal.aborted) throw new IdentityError("ABORTED", "aborted", { cause: signal.reason });
  const { promise, resolve, reject } = Promise.withResolvers<X509Certificate | undefined>();
  const socket: TLSSocket = connect({
    host,
    port,
    ...(isIP(host) === 0 && { servername: host }),
    // This connection only fetches the root. Whether it is trusted depends on its pin.
    rejectUnauthorized: false,
    minVersion: "TLSv1.2",
    ALPNProtocols: ["h2"],
  });
  const abort = () => reject(new IdentityError("ABORTED", "aborted", { cause: signal.reason }));
  const late = () =>
    reject(new IdentityError("TIMEOUT", `${host}:${port} didn't answer within ${timeoutMs} ms`));
  const timer = setTimeout(late, timeoutMs);
  signal.addEventListener("abort", abort, { once: true });
  socket.on("error", (cause) =>
    reject(
      new IdentityError("CONNECT_FAILED", `can't connect to ${host}:${port}: ${cause.message}`, { cause }),
    ),
  );
  socket.once("close", () =>
    reject(new IdentityError("CONNECT_FAILED", `${host}:${port} closed the connection`)),
  );
  socket.once("secureConnect", () => resolve(socket.getPeerX509Certificate()));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    socket.destroy();
  }
}

/** Follows the chain to a self-signed authority, and verifies each signature. */
function rootOf(leaf: X509Certificate | undefined): X509Certificate | undefined {
  let certificate = leaf;
  for (let length = 0; certificate !== undefined && length < MAX_CHAIN; length += 1) {
    if (certificate.checkIssued(certificate)) {
      return certificate.ca && certificate.verify(certificate.publicKey) ? certificate : undefined;
    }
    const issuer: X509Certificate | undefined = certificate.issuerCertificate;
    if (issuer === undefined || !certificate.verify(issuer.publicKey)) return undefined;
    certificate = issuer;
  }
  return undefined;
}
