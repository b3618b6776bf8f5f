import type { ObjectName } from "./object-name.ts";

/** The prefixes of records in the store. Names are validated before and never contain a slash. */
export const PREFIXES = {
  resources: "resources/",
  /** Sorts before `pods/`, so that a view that is loaded in key order has templates before the pods that refer to them. */
  podTemplates: "pod-templates/",
  pods: "pods/",
  statuses: "statuses/",
  /** Failed pods that a rollback has stopped. No decision depends on them. */
  keptPods: "kept-pods/",
  nodes: "nodes/",
  reports: "reports/",
  rollouts: "rollouts/",
  applies: "applies/",
  joinTokens: "join-tokens/",
  coordinatorTokens: "coordinator-tokens/",
  apiTokens: "api-tokens/",
  apiTokenUses: "api-token-uses/",
  dashboardSessions: "dashboard-sessions/",
  /** The ports of pods that were opened in the dashboard. */
  openedPorts: "opened-ports/",
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
  /** The position in the events up to which each receiver of notifications has got them. */
  notifications: "notifications/",
  /** The encrypted part of workspaces' records. The other keys of workspaces are defined in the folder `workspaces`. */
  workspaceSecrets: "workspaces/secrets/",
} as const;

export const CLUSTER_KEY = "cluster";
/** The key of the record of all starts of coordinators on this store. */
export const HISTORY_KEY = "history";
/** The key of the record that the store was rolled back, with the epoch in which this was detected. */
export const ROLLBACK_KEY = "rolled-back";
/** The key of the encrypted secret with which versions of objects are hashed. */
export const VERSION_KEY_KEY = "version-key";
/**
 * The key of the cluster's authority with its encrypted keys, after coordinators that share the store have begun to replace
 * it.
 */
export const AUTHORITY_KEY = "authority";

/** The kinds of resources, which are the field names of ForageResource.spec. */
export type ResourceKind = "container_service" | "service" | "route" | "cron_job" | "job";

export function resourceKey(namespace: string, kind: string, name: string): string {
  return `${PREFIXES.resources}${namespace}/${kind}/${name}`;
}

export function podKey(namespace: string, name: string): string {
  return `${PREFIXES.pods}${namespace}/${name}`;
}

/**
 * Returns the key of a workload's pod template. `workload` is the workload's key `namespace/kind/name`; `ref` is a hash of
 * the template.
 */
export function podTemplateKey(workload: string, ref: string): string {
  return `${PREFIXES.podTemplates}${workload}/${ref}`;
}

export function statusKey(namespace: string, podName: string): string {
  return `${PREFIXES.statuses}${namespace}/${podName}`;
}

export function keptPodKey(namespace: string, podName: string): string {
  return `${PREFIXES.keptPods}${namespace}/${podName}`;
}

export function nodeKey(name: string): string {
  return `${PREFIXES.nodes}${name}`;
}

export function reportKey(nodeName: string): string {
  return `${PREFIXES.reports}${nodeName}`;
}

export function rolloutKey(id: string): string {
  return `${PREFIXES.rollouts}${id}`;
}

/** Returns the key of an apply id. Apply ids are texts of the caller, so they are escaped. */
export function applyKey(namespace: string, applyId: string): string {
  return `${PREFIXES.applies}${namespace}/${encodeURIComponent(applyId)}`;
}

export function joinTokenKey(id: string): string {
  return `${PREFIXES.joinTokens}${id}`;
}

export function coordinatorTokenKey(id: string): string {
  return `${PREFIXES.coordinatorTokens}${id}`;
}

export function apiTokenKey(id: string): string {
  return `${PREFIXES.apiTokens}${id}`;
}

export function apiTokenUseKey(id: string): string {
  return `${PREFIXES.apiTokenUses}${id}`;
}

export function namespaceKey(name: string): string {
  return `${PREFIXES.namespaces}${name}`;
}

export function objectKey({ namespace, kind, name }: ObjectName): string {
  return `${PREFIXES.objects}${namespace}/${kind}/${name}`;
}

/** Returns the key of a version's record. The record's encryption is bound to it. */
export function objectVersionKey(name: ObjectName, version: string): string {
  return `${versionsPrefix(name)}${version}`;
}

export function versionsPrefix({ namespace, kind, name }: ObjectName): string {
  return `${PREFIXES.objectVersions}${namespace}/${kind}/${name}/`;
}

/** Returns the key of a workload's revision. Numbers are padded so that they sort. */
export function revisionKey(namespace: string, kind: string, name: string, number: number): string {
  return `${PREFIXES.revisions}${namespace}/${kind}/${name}/${String(number).padStart(10, "0")}`;
}

export function workloadStatusKey(namespace: string, kind: string, name: string): string {
  return `${PREFIXES.workloadStatuses}${namespace}/${kind}/${name}`;
}

export function scaleKey(namespace: string, name: string): string {
  return `${PREFIXES.scales}${namespace}/${name}`;
}

/** Returns the key of an event. Numbers are padded, so that events sort by them. */
export function eventKey(sequence: number): string {
  return `${PREFIXES.events}${String(sequence).padStart(16, "0")}`;
}

export function notificationKey(name: string): string {
  return `${PREFIXES.notifications}${name}`;
}

export function serviceAddressKey(namespace: string, name: string): string {
  return `${PREFIXES.serviceAddresses}${namespace}/${name}`;
}

/**
 * Returns the key of a hostname's certificate, to which the encryption of the private key is bound. Hostnames contain no
 * slash.
 */
export function certificateKey(hostname: string): string {
  return `${PREFIXES.certificates}${hostname}`;
}

/** The key of the development authority. The encryption of the authority's private key is bound to it. */
export const SIGNING_AUTHORITY_KEY = `${PREFIXES.certificateIssuers}self-signed`;
/** The key of the time for which no request is sent to the issuer. */
export const ISSUER_PAUSE_KEY = `${PREFIXES.certificateIssuers}pause`;
/**
 * The prefix of the keys of ACME accounts, followed by a hash of the directory's URL. The encryption of the account key is
 * bound to the key.
 */
export const ACME_ACCOUNT_PREFIX = `${PREFIXES.certificateIssuers}acme/`;
