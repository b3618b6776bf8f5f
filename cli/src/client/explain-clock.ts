import { X509Certificate } from "node:crypto";
import { connect, type PeerCertificate } from "node:tls";
import type { Endpoint } from "../config/settings.ts";

/**
 * The time limit of a request that only improves an error message. The coordinator has just
 * answered, so it should answer in time.
 */
const PROBE_TIMEOUT_MS = 2_000;

/** The validity period of a certificate. */
export interface Validity {
  readonly from: Date;
  readonly to: Date;
}

/** Reports whether a connection failed because a certificate is expired or not yet valid. */
export function isOutOfTime(details: string): boolean {
  return /certificate (is not yet valid|has expired)|CERT_NOT_YET_VALID|CERT_HAS_EXPIRED/i.test(details);
}

/**
 * Describes which certificate is not valid now, by which clock, and what to do. Only starts a TLS
 * handshake.
 */
export async function explainClock(endpoint: Endpoint, nowMs: number): Promise<string> {
  const { server, caFile } = endpoint;
  const authority = validityOf(endpoint.caPem);
  if (authority !== undefined && !isWithin(authority, nowMs))
    return `the CA in ${caFile} is valid ${text(authority)}, and the clock of this host says ${iso(nowMs)}: set this clock if it is wrong; if the CA was made while the coordinator's clock was ahead, it is valid from then on`;
  const served = await servedValidity(server);
  const shown = served === undefined ? "is not valid at the moment" : `is valid ${text(served)}`;
  return `the certificate of ${server} ${shown}, and the clock of this host says ${iso(nowMs)}: compare the clocks of both hosts and set the one that is wrong; the coordinator makes itself a new certificate soon after its clock is set, at a restart at once`;
}

/** Returns the validity of a certificate in PEM; undefined for other texts. */
export function validityOf(pem: string): Validity | undefined {
  try {
    const { validFromDate, validToDate } = new X509Certificate(pem);
    return { from: validFromDate, to: validToDate };
  } catch {
    return undefined;
  }
}

/**
 * Returns the validity of the certificate that a server sends; undefined if it sends none in time.
 */
export function servedValidity(server: string): Promise<Validity | undefined> {
  const at = server.lastIndexOf(":");
  const host = server.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve) => {
    // The certificate is not verified, because only its dates are read and nothing is sent over
    // this connection.
    const socket = connect({
      ...{ host, port: Number(server.slice(at + 1)), ALPNProtocols: ["h2"], rejectUnauthorized: false },
    });
    const end = (validity?: Validity): void => {
      socket.destroy();
      resolve(validity);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, end);
    socket.once("error", () => end());
    socket.once("secureConnect", () => end(datesOf(socket.getPeerCertificate())));
  });
}

function datesOf({ valid_from: from, valid_to: to }: PeerCertificate): Validity | undefined {
  const validity = { from: new Date(from), to: new Date(to) };
  return Number.isNaN(validity.from.getTime()) || Number.isNaN(validity.to.getTime()) ? undefined : validity;
}

function isWithin({ from, to }: Validity, nowMs: number): boolean {
  return from.getTime() <= nowMs && nowMs <= to.getTime();
}

function text({ from, to }: Validity): string {
  return `from ${iso(from.getTime())} to ${iso(to.getTime())}`;
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
