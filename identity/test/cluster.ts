import { randomBytes } from "node:crypto";
import { CertificateAuthority } from "../src/ca.ts";
import { createKeyAndCsr } from "../src/csr.ts";
import { nodeId } from "../src/node-id.ts";
import type { TlsMaterial } from "../src/tls-server/material.ts";

export interface Pair {
  readonly certPem: string;
  readonly keyPem: string;
}

/** Returns an authority with the system's random generator and a clock that is `aheadMs` fast. */
export async function anAuthority(cluster = "home", aheadMs = 0): Promise<CertificateAuthority> {
  return await CertificateAuthority.create(cluster, { nowMs: () => Date.now() + aheadMs, randomBytes });
}

/** Returns the same authority with a clock that is `aheadMs` fast. */
export async function atAnotherTime(
  ca: CertificateAuthority,
  aheadMs: number,
): Promise<CertificateAuthority> {
  return await CertificateAuthority.fromPem(ca.toPem(), { nowMs: () => Date.now() + aheadMs, randomBytes });
}

export async function aServer(ca: CertificateAuthority, clientCaPem = ca.certPem): Promise<TlsMaterial> {
  const { chainPem, keyPem } = await ca.issueServer({ dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"] });
  return { chainPem, keyPem, clientCaPem };
}

export async function aNode(
  ca: CertificateAuthority,
  id = "n1",
): Promise<Pair & { readonly serial: string; readonly notAfterMs: number }> {
  const { keyPem, csrPem } = await createKeyAndCsr();
  const issued = await ca.issueNode(nodeId(id), csrPem);
  return { certPem: issued.chainPem, keyPem, serial: issued.serial, notAfterMs: issued.notAfterMs };
}

/** Polls every few milliseconds until `condition` holds. Fails after `limitMs`. */
export async function until(condition: () => boolean, what: string, limitMs = 90_000): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
