import { planBinds } from "./bind-plan.ts";
import { checkClaimName, checkMounts, checkPod, checkPodUid, undeclaredClaim } from "./check-spec.ts";
import { planFiles } from "./plan-files.ts";
import {
  type ClaimState,
  type PodsToRecover,
  type PodVolumeSpec,
  type PodVolumes,
  type VolumeBind,
  VolumeError,
  type VolumeMount,
  type VolumeSource,
} from "./volumes.ts";

interface FakeClaim {
  readonly namespace: string;
  readonly name: string;
  readonly capacityBytes: number | undefined;
  readonly users: Set<string>;
}

/** Volumes that exist in memory only, for simulations. Like a host, they survive the agent that uses them. */
export class FakeVolumes implements PodVolumes {
  /** Errors of calls by `<call> <pod uid>`. A call fails as long as its entry exists. */
  readonly faults = new Map<string, VolumeError>();
  /** The pods with volumes on the host, by uid. */
  readonly pods = new Map<string, PodVolumeSpec>();
  readonly #claims = new Map<string, FakeClaim>();
  /** The pods that this agent has prepared. A restart clears the set. */
  #prepared = new Set<string>();

  /** Starts a new agent on the same host. */
  restart(): void {
    this.#prepared = new Set();
  }

  async recover({ knownUids }: PodsToRecover, signal: AbortSignal): Promise<void> {
    for (const uid of [...this.pods.keys()]) if (!knownUids.has(uid)) await this.release(uid, signal);
  }

  async prepare(pod: PodVolumeSpec, signal: AbortSignal): Promise<void> {
    this.#enter("prepare", pod.uid, signal);
    checkPod(pod);
    for (const { source } of pod.volumes) {
      if (source.type === "files") planFiles(source);
      if (source.type === "claim" && source.undeclared) throw undeclaredClaim(source.namespace, source.claim);
      if (source.type === "claim") this.#hold(source, pod.uid);
    }
    this.pods.set(pod.uid, pod);
    this.#prepared.add(pod.uid);
  }

  async binds(
    podUid: string,
    container: string,
    mounts: readonly VolumeMount[],
    signal: AbortSignal,
  ): Promise<readonly VolumeBind[]> {
    this.#enter("binds", podUid, signal);
    const pod = this.#prepared.has(podUid) ? this.pods.get(podUid) : undefined;
    if (pod === undefined)
      throw new VolumeError("HOST_FAILED", `the volumes of pod ${podUid} aren't prepared`);
    checkMounts(mounts, new Set(pod.volumes.map(({ name }) => name)));
    const ready = new Map(
      pod.volumes.map(({ name, source }) => [
        name,
        { path: pathOf(podUid, name, source), readOnly: isReadOnly(source) },
      ]),
    );
    return planBinds(mounts, ready).map(({ source, target, readOnly, pin }) => ({
      source: pin === undefined ? source : `/fake/${podUid}/pin/${container}.${pin.index}`,
      target,
      readOnly,
    }));
  }

  async update(pod: PodVolumeSpec, signal: AbortSignal): Promise<void> {
    this.#enter("update", pod.uid, signal);
    checkPod(pod);
    for (const { source } of pod.volumes) {
      if (source.type === "files" && source.contents !== undefined) planFiles(source);
    }
    if (this.pods.has(pod.uid)) this.pods.set(pod.uid, pod);
  }

  async release(podUid: string, signal: AbortSignal): Promise<void> {
    this.#enter("release", podUid, signal);
    this.pods.delete(podUid);
    this.#prepared.delete(podUid);
    for (const { users } of this.#claims.values()) users.delete(podUid);
  }

  async claims(): Promise<readonly ClaimState[]> {
    return [...this.#claims.values()].map(({ namespace, name, capacityBytes, users }) => ({
      namespace,
      name,
      users: [...users],
      ...(capacityBytes !== undefined && { capacityBytes }),
    }));
  }

  async removeClaim(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    checkClaimName(namespace, name);
    signal.throwIfAborted();
    const key = `${namespace}/${name}`;
    const used = this.#claims.get(key)?.users.size ?? 0;
    if (used > 0) throw new VolumeError("IN_USE", `claim ${key} is in use by ${used} of this host's pods`);
    this.#claims.delete(key);
  }

  async close(): Promise<void> {}

  #enter(call: string, podUid: string, signal: AbortSignal): void {
    checkPodUid(podUid);
    if (signal.aborted) throw new VolumeError("ABORTED", `${call}: aborted`);
    const fault = this.faults.get(`${call} ${podUid}`);
    if (fault !== undefined) throw fault;
  }

  #hold(
    { namespace, claim: name, capacityBytes }: VolumeSource & { readonly type: "claim" },
    podUid: string,
  ): void {
    const key = `${namespace}/${name}`;
    const claim = this.#claims.get(key) ?? { namespace, name, capacityBytes, users: new Set() };
    claim.users.add(podUid);
    this.#claims.set(key, claim);
  }
}

function pathOf(podUid: string, name: string, source: VolumeSource): string {
  switch (source.type) {
    case "hostPath":
      return source.path;
    case "claim":
      return `/fake/claims/${source.namespace}/${source.claim}`;
    case "provided":
      return `/fake/provided/${source.provider}/${source.id}`;
    default:
      return `/fake/${podUid}/volume/${name}`;
  }
}

function isReadOnly(source: VolumeSource): boolean {
  switch (source.type) {
    case "files":
      return true;
    case "claim":
    case "nfs":
      return source.readOnly;
    default:
      return false;
  }
}
