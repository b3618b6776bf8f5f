import type { Log } from "@forage/common/log";
import {
  type ClaimAssignment,
  type HostPathLimits,
  type IdentityToken,
  type ObjectData,
  PodAssignment,
  type RegistryCredential,
} from "@forage/proto/forage/agent/v1/agent";
import type { PodRecord } from "@forage/proto/forage/store/v1/store";
import type { ContainerPort } from "@forage/proto/forest/v1/forage";
import { objectKey } from "../model/keys.ts";
import type { ObjectName } from "../model/object-name.ts";
import { type PodRef, pinName } from "../model/pod-refs.ts";
import { toEpochMs, toTimestamp } from "../model/timestamp.ts";
import type { IdentityIssuer, SignedToken } from "../objects/identity-issuer.ts";
import type { Vault } from "../objects/vault.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { PodEntry } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";
import { servicePortsOf } from "./service-ports.ts";

export interface AssignmentOptions {
  readonly state: ClusterView;
  readonly vault: Vault;
  readonly issuer: IdentityIssuer;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the host paths that a pod may mount. Undefined: any. */
  readonly hostPathLimits: (pod: PodEntry) => HostPathLimits | undefined;
}

/**
 * The limit of an assignment's objects in bytes. An agent's journal accepts 4 MiB for one pod; the rest is for the pod's
 * template.
 */
const MAX_OBJECT_BYTES = 3 * 1024 * 1024;

/** Builds the assignments that nodes receive: pods with all objects to which they refer. */
export class Assignments {
  readonly #options: AssignmentOptions;

  constructor(options: AssignmentOptions) {
    this.#options = options;
  }

  /** Returns a text that changes whenever the assignment does, except for the identity token, which is always new. */
  fingerprint(pod: PodEntry): string {
    const { revision, refs } = pod;
    const { objects } = this.#options.state;
    // The revision of an object would also change when old versions of it are removed.
    let text = `${revision}`;
    for (const ref of refs) {
      const record = objects.get(ref)?.record;
      text += record === undefined ? " -" : ` ${toEpochMs(record.createdAt)}.${record.generation}`;
    }
    for (const { containerPort, protocol } of this.#servicePorts(pod))
      text += ` ${containerPort}/${protocol}`;
    const limits = this.#options.hostPathLimits(pod);
    if (limits === undefined) return `${text} *`;
    for (const path of limits.prefixes) text += ` ${JSON.stringify(path)}`;
    return text;
  }

  /**
   * Returns the registry credentials for a template with these references. `about` identifies the pod or workload in the
   * log.
   */
  logins(refs: readonly PodRef[], about: string): RegistryCredential[] {
    return this.#credentials(refs, { bytes: MAX_OBJECT_BYTES, about });
  }

  of(pod: PodEntry): PodAssignment {
    const { record } = pod;
    const stopping = record.stoppingSince !== undefined;
    const budget = { bytes: MAX_OBJECT_BYTES, about: record.name };
    return {
      uid: record.uid,
      namespace: record.namespace,
      name: record.name,
      workloadKind: record.workloadKind,
      workloadName: record.workloadName,
      labels: record.labels,
      template: record.template,
      specHash: record.templateHash,
      createdAt: record.createdAt,
      stopping,
      secrets: this.#contents(pod, "secret", budget),
      configMaps: this.#contents(pod, "config_map", budget),
      registryCredentials: this.#credentials(pod.refs, budget),
      claims: this.#claims(pod),
      hostname: record.hostname,
      servicePorts: this.#servicePorts(pod),
      keepLogsSeconds: keepLogsSeconds(record),
      hostPathLimits: this.#options.hostPathLimits(pod),
      identityToken: stopping ? undefined : this.identityToken(pod),
    };
  }

  /** Returns a new identity token. Undefined: the pod has no service account. */
  identityToken({ record }: PodEntry): IdentityToken | undefined {
    const serviceAccount = record.template?.podConfig?.serviceAccountName ?? "";
    if (serviceAccount === "") return undefined;
    const { issuer, clock } = this.#options;
    const { namespace, name: podName, uid: podUid, node } = record;
    return onWire(issuer.issue({ namespace, serviceAccount, podName, podUid, node }, clock.nowMs()));
  }

  #servicePorts(pod: PodEntry): ContainerPort[] {
    return servicePortsOf(this.#options.state, pod);
  }

  #contents(pod: PodEntry, kind: "secret" | "config_map", budget: Budget): ObjectData[] {
    return pod.refs
      .filter((ref) => ref.kind === kind)
      .flatMap((ref) => this.#versionsOf(pod, ref).map((version) => this.#data(ref, version, budget)))
      .filter((data) => data !== undefined);
  }

  /**
   * Returns the versions that the pod needs: the newest one for references that follow changes, and the pinned one for the
   * environment.
   */
  #versionsOf({ record }: PodEntry, ref: PodRef): string[] {
    const current = this.#currentOf(ref);
    const pinned = ref.env ? record.template?.objectVersions[pinName(ref)] : undefined;
    const versions = [...(pinned === undefined || ref.live ? [current] : []), pinned];
    return [...new Set(versions.filter((version) => version !== undefined))];
  }

  #currentOf(name: ObjectName): string | undefined {
    return this.#options.state.objects.get(name)?.record.versions[0];
  }

  #data(name: ObjectName, version: string, budget: Budget): ObjectData | undefined {
    const data = this.#open(name, version, budget);
    return data && { name: name.name, data, version, current: version === this.#currentOf(name) };
  }

  #credentials(refs: readonly PodRef[], budget: Budget): RegistryCredential[] {
    return refs
      .filter(({ kind }) => kind === "registry_credential")
      .flatMap((ref) => {
        const version = this.#currentOf(ref);
        const data = version === undefined ? undefined : this.#open(ref, version, budget);
        if (data === undefined) return [];
        const text = (key: string): string => data[key]?.toString() ?? "";
        return [
          { name: ref.name, server: text("server"), username: text("username"), password: text("password") },
        ];
      });
  }

  #claims({ refs }: PodEntry): ClaimAssignment[] {
    return refs.flatMap((ref) => {
      const spec = this.#options.state.objects.get(ref)?.record.spec;
      return spec?.$case === "claim" ? [{ name: ref.name, capacityBytes: spec.value.capacityBytes }] : [];
    });
  }

  /** Decrypts an object's content. Content that is unavailable is omitted and logged, and the pod waits for it. */
  #open(name: ObjectName, version: string, budget: Budget): Record<string, Buffer> | undefined {
    const { state, vault, log } = this.#options;
    const stored = state.objects.version(name, version);
    if (stored === undefined) return undefined;
    const about = { object: objectKey(name), pod: budget.about };
    try {
      const data = vault.open(name, stored);
      budget.bytes -= Object.values(data).reduce((sum, value) => sum + value.byteLength, 0);
      if (budget.bytes >= 0) return data;
      log.error({ event: "pod-objects-too-large", ...about, maxBytes: MAX_OBJECT_BYTES });
    } catch (err) {
      log.error({ event: "object-not-decrypted", ...about, err });
    }
    return undefined;
  }
}

interface Budget {
  bytes: number;
  /** The service account of the token. */
  readonly about: string;
}

function keepLogsSeconds({ stoppingSince, keptUntil }: PodRecord): number {
  if (stoppingSince === undefined || keptUntil === undefined) return 0;
  return Math.max(0, Math.round((toEpochMs(keptUntil) - toEpochMs(stoppingSince)) / 1000));
}

function onWire({ token, expiresAtMs }: SignedToken): IdentityToken {
  return { token, expiresAt: toTimestamp(expiresAtMs) };
}

export function assignmentBytes(assignment: PodAssignment): number {
  return PodAssignment.encode(assignment).finish().byteLength;
}
