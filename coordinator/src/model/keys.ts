import type { ObjectName } from "./object-name.ts";

/** The prefixes of records in the store. Names are validated before and never contain a slash. */
export const prefixes = {
  resources: "resources/",
  /** Sorts before `pods/`, so that a view that is filled in the order of keys has templates before the pods that refer to them. */
  podTemplates: "pod-templates/",
  pods: "pods/",
  statuses: "statuses/",
  /** Failed pods that a rollback has stopped. Nothing decides by them. */
  keptPods: "kept-pods/",
  nodes: "nodes/",
  reports: "reports/",
  rollouts: "rollouts/",
  applies: "applies/",
  joinTokens: "join-tokens/",
  apiTokens: "api-tokens/",
  apiTokenUses: "api-token-uses/",
  objects: "objects/",
  objectVersions: "object-versions/",
  revisions: "revisions/",
  workloadStatuses: "workload-statuses/",
  scales: "scales/",
  events: "events/",
  serviceAddresses: "service-addresses/",
  certificates: "certificates/",
  certificateIssuers: "certificate-issuers/",
  namespaces: "namespaces/",
  /** The encrypted part of workspaces' records; the rest of them is known to the folder `workspaces` only. */
  workspaceSecrets: "workspaces/secrets/",
} as const;

export const clusterKey = "cluster";
/** Every start of a coordinator on this store. */
export const historyKey = "history";
/** The key of the record that the store was rolled back, with the epoch in which this was detected. */
export const rollbackKey = "rolled-back";
/** The encrypted key that versions of secrets are hashed with. */
export const versionKeyKey = "version-key";

/** `kind/name` within a namespace; kinds are the field names of ForageResource.spec. */
export type ResourceKind = "container_service" | "service" | "route" | "cron_job" | "job";

export function resourceKey(namespace: string, kind: string, name: string): string {
  return `${prefixes.resources}${namespace}/${kind}/${name}`;
}

export function podKey(namespace: string, name: string): string {
  return `${prefixes.pods}${namespace}/${name}`;
}

/** Returns the key of a workload's pod template. `workload` is its key `namespace/kind/name`; `ref` is a hash of the template. */
export function podTemplateKey(workload: string, ref: string): string {
  return `${prefixes.podTemplates}${workload}/${ref}`;
}

export function statusKey(namespace: string, podName: string): string {
  return `${prefixes.statuses}${namespace}/${podName}`;
}

export function keptPodKey(namespace: string, podName: string): string {
  return `${prefixes.keptPods}${namespace}/${podName}`;
}

export function nodeKey(name: string): string {
  return `${prefixes.nodes}${name}`;
}

export function reportKey(nodeName: string): string {
  return `${prefixes.reports}${nodeName}`;
}

export function rolloutKey(id: string): string {
  return `${prefixes.rollouts}${id}`;
}

/** Apply ids are the caller's own strings, so they are escaped. */
export function applyKey(namespace: string, applyId: string): string {
  return `${prefixes.applies}${namespace}/${encodeURIComponent(applyId)}`;
}

export function joinTokenKey(id: string): string {
  return `${prefixes.joinTokens}${id}`;
}

export function apiTokenKey(id: string): string {
  return `${prefixes.apiTokens}${id}`;
}

export function apiTokenUseKey(id: string): string {
  return `${prefixes.apiTokenUses}${id}`;
}

export function namespaceKey(name: string): string {
  return `${prefixes.namespaces}${name}`;
}

export function objectKey({ namespace, kind, name }: ObjectName): string {
  return `${prefixes.objects}${namespace}/${kind}/${name}`;
}

/** Also what the record's encryption is bound to. */
export function objectVersionKey(name: ObjectName, version: string): string {
  return `${versionsPrefix(name)}${version}`;
}

export function versionsPrefix({ namespace, kind, name }: ObjectName): string {
  return `${prefixes.objectVersions}${namespace}/${kind}/${name}/`;
}

/** Returns the key of a workload's revision. Numbers are padded so that they sort. */
export function revisionKey(namespace: string, kind: string, name: string, number: number): string {
  return `${prefixes.revisions}${namespace}/${kind}/${name}/${String(number).padStart(10, "0")}`;
}

export function workloadStatusKey(namespace: string, kind: string, name: string): string {
  return `${prefixes.workloadStatuses}${namespace}/${kind}/${name}`;
}

export function scaleKey(namespace: string, name: string): string {
  return `${prefixes.scales}${namespace}/${name}`;
}

/** Padded, so that events sort by their numbers. */
export function eventKey(sequence: number): string {
  return `${prefixes.events}${String(sequence).padStart(16, "0")}`;
}

export function serviceAddressKey(namespace: string, name: string): string {
  return `${prefixes.serviceAddresses}${namespace}/${name}`;
}

/** Hostnames hold no slash. Also what the key's encryption is bound to. */
export function certificateKey(hostname: string): string {
  return `${prefixes.certificates}${hostname}`;
}

/** The key of the development authority. The encryption of the authority's private key is bound to it. */
export const signingAuthorityKey = `${prefixes.certificateIssuers}self-signed`;
/** The key of the time for which no request is sent to the issuer. */
export const issuerPauseKey = `${prefixes.certificateIssuers}pause`;
/** Followed by a hash of the directory's URL. Also what the account key's encryption is bound to. */
export const acmeAccountPrefix = `${prefixes.certificateIssuers}acme/`;
