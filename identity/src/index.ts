/**
 * Exports the modules that every process can afford. `@forage/identity/ca` and `/ca-file` issue certificates and load
 * an X.509 library (10 MB), which only the coordinator needs. `/tls-server` and `/credentials` load grpc-js.
 */

export {
  type ApiTokenRecord,
  type ApiTokenVerdict,
  bearerToken,
  type MintApiToken,
  mintApiToken,
  parseApiToken,
  verifyApiToken,
} from "./api-token.ts";
export {
  authorize,
  type Caller,
  type Decision,
  type Denial,
  type Grant,
  isRole,
  type MethodTable,
  type Requirement,
  ROLES,
  type Role,
} from "./authorize.ts";
export { createKeyAndCsr, type KeyAndCsr } from "./csr.ts";
export { IDENTITY_ERROR_CODES, IdentityError, type IdentityErrorCode } from "./error.ts";
export {
  type JoinAttempt,
  type JoinRefusal,
  type JoinToken,
  type JoinTokenRecord,
  type JoinUse,
  type JoinVerdict,
  MAX_JOIN_TTL_MS,
  type MintJoinToken,
  mintJoinToken,
  parseJoinToken,
  recordUse,
  verifyJoinToken,
} from "./join-token.ts";
export {
  type CheckedKeyPair,
  checkKeyPair,
  type KeyPair,
  readKeyPair,
  writeKeyPair,
} from "./key-pair-file.ts";
export {
  type ClientName,
  type ClusterName,
  clientName,
  clusterName,
  type NodeId,
  nodeId,
} from "./node-id.ts";
export {
  type ClientIdentity,
  identityOf,
  type NodeIdentity,
  normalSerial,
  type PeerIdentity,
} from "./peer-identity.ts";
export { findPrivateKey, mergeBundles, pinsOf, readCertificate, spkiPin, splitCertificates } from "./pem.ts";
export { type ProbeResult, probeServer } from "./probe-server.ts";
export { NODE_RENEW_AT, renewAtMs, renewalState, type Validity } from "./renewal.ts";
