import { CertificateRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../model/codec.ts";
import { certificateKey } from "../model/keys.ts";
import { toEpochMs, toTimestamp } from "../model/timestamp.ts";
import type { Vault } from "../objects/vault.ts";
import type { CertificateState } from "./certificate-state.ts";
import type { NewCertificate } from "./issuer.ts";

/** Encodes a state. The key is encrypted; the certificate is public. */
export function encodeCertificateState(state: CertificateState, vault: Vault): Uint8Array {
  const { hostname, issuer, certificate, failures, error, retryAtRequested } = state;
  const time = (ms: number | undefined) => (ms === undefined ? undefined : toTimestamp(ms));
  return encodeRecord(CertificateRecord, {
    hostname,
    issuer,
    chainPem: certificate?.chainPem ?? "",
    key: certificate && vault.sealText(certificate.keyPem, certificateKey(hostname)),
    notBefore: time(certificate?.notBeforeMs),
    notAfter: time(certificate?.notAfterMs),
    renewAt: time(state.renewAtMs),
    failures,
    error,
    failedAt: time(state.failedAtMs),
    retryAt: time(state.retryAtMs),
    retryAtAsked: retryAtRequested,
    renewalAskedAt: time(state.renewalRequestedAtMs),
  });
}

/** Decodes a state. Throws INTERNAL if its key can't be decrypted. */
export function certificateStateOf(record: CertificateRecord, vault: Vault): CertificateState {
  const { hostname, issuer, failures, error } = record;
  return {
    hostname,
    issuer,
    certificate: certificateOf(record, vault),
    renewAtMs: toEpochMs(record.renewAt),
    failures,
    error,
    failedAtMs: toEpochMs(record.failedAt),
    retryAtMs: toEpochMs(record.retryAt),
    retryAtRequested: record.retryAtAsked,
    renewalRequestedAtMs: toEpochMs(record.renewalAskedAt),
  };
}

function certificateOf(record: CertificateRecord, vault: Vault): NewCertificate | undefined {
  const { chainPem, key, notBefore, notAfter, hostname } = record;
  if (chainPem === "" || key === undefined || notBefore === undefined || notAfter === undefined)
    return undefined;
  return {
    chainPem,
    keyPem: vault.openText(key, certificateKey(hostname)),
    notBeforeMs: toEpochMs(notBefore),
    notAfterMs: toEpochMs(notAfter),
  };
}
