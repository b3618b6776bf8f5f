import { KeyedMutex } from "@forage/common/keyed-mutex";
import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { ApplyResourcesRequest, ForageResource } from "@forage/proto/forest/v1/forage";
import { CoordinatorError, type FieldViolation } from "../../errors.ts";
import { namespaceKey } from "../../model/keys.ts";
import type { Caller } from "../../rpc/caller.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { BundleItem } from "../forage/bundle.ts";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { checkHostnames } from "./check-hostnames.ts";
import { checkPolicy } from "./check-policy.ts";
import { podOf } from "./pod-parts.ts";
import { type EffectivePolicy, isNamespaced, policyFor, storedRole } from "./policy.ts";
import {
  checkApplyQuota,
  checkSingleQuota,
  DEFAULT_LIMITS,
  exceeded,
  type Limits,
  limitAmount,
  type SingleChange,
} from "./quota.ts";
import { storedViolations } from "./stored-violations.ts";
import { type Amounts, costOf, plus, QUOTA_RESOURCES, sizeOf, Usage } from "./usage.ts";

/** Decides what callers may create in a namespace: which pods, by its policies, and how many, by its quota. */
export class NamespaceRules {
  readonly usage: Usage;
  readonly #state: ClusterView;
  readonly #mutex = new KeyedMutex();

  /** `foreignKinds` are the kinds of workloads that have pods but no resource. */
  constructor(state: ClusterView, foreignKinds: readonly string[] = []) {
    this.#state = state;
    this.usage = new Usage(state, foreignKinds);
  }

  /**
   * Checks the pods of the request. @throws CoordinatorError INVALID with every field that the caller may not set in the
   * namespace.
   */
  validateAgainstState(request: ApplyResourcesRequest, caller: Caller): void {
    const { namespace, resources } = request;
    const policy = this.policyOf(namespace, caller);
    const findings = new Findings();
    const root = new Field(findings).at("resources");
    for (const [index, resource] of resources.entries()) checkResource(resource, root.item(index), policy);
    if (isNamespaced(caller, namespace))
      checkHostnames(
        request,
        this.#state.resources().map(({ record }) => record),
        root,
      );
    findings.raise();
  }

  /** Checks the pods of a resource that is created in another way than by an apply. @throws CoordinatorError INVALID. */
  checkResource(resource: ForageResource, namespace: string, caller: Caller): void {
    const findings = new Findings();
    checkResource(resource, new Field(findings), this.policyOf(namespace, caller));
    findings.raise();
  }

  /** Checks the bundle against the namespace's quota. @throws CoordinatorError INVALID with the fields that exceed it. */
  checkQuota(namespace: string, items: readonly BundleItem[], caller: Caller): void {
    const findings = new Findings();
    const check = { namespace, limits: this.limitsOf(namespace, caller), usage: this.usage };
    checkApplyQuota(items, new Field(findings).at("resources"), check);
    findings.raise();
  }

  /** Checks the new content that an undo gives a stored resource. @throws CoordinatorError INVALID. */
  checkUndo(before: ResourceRecord, after: ForageResource, caller: Caller): void {
    const change = plus(costOf(after), this.usage.of(before), -1);
    const { namespace } = before;
    this.#excess({ resource: after, change }, namespace, this.limitsOf(namespace, caller)).raise();
  }

  /** Checks a run of a cron job that the caller starts. @throws CoordinatorError INVALID. */
  checkRun(owner: ResourceRecord, run: ForageResource, caller: Caller): void {
    this.#excessOfRun(owner, run, this.limitsOf(owner.namespace, caller)).raise();
  }

  /**
   * Returns the reason why the namespace's quota has no room for a scheduled run. Undefined: it has room. The quota applies
   * as for the caller who applied the cron job.
   */
  runRefusal(owner: ResourceRecord, run: ForageResource): string | undefined {
    const limits = this.#limits(owner.namespace, storedRole(owner.policyRole) !== "global");
    const [first] = this.#excessOfRun(owner, run, limits).invalidFields;
    return first && `${first.field}: ${first.description}`;
  }

  #excessOfRun(owner: ResourceRecord, run: ForageResource, limits: Limits): Findings {
    return this.#excess({ resource: run, change: this.usage.ofRun(owner, run) }, owner.namespace, limits);
  }

  #excess(change: SingleChange, namespace: string, limits: Limits): Findings {
    const findings = new Findings();
    checkSingleQuota(change, new Field(findings), { namespace, limits, usage: this.usage });
    return findings;
  }

  /** Checks an object such as a secret or config map against the quota. @throws CoordinatorError INVALID. */
  checkObject(
    name: { readonly namespace: string; readonly kind: string; readonly name: string },
    bytes: number,
    caller: Caller,
  ): void {
    const { namespace } = name;
    const limits = this.limitsOf(namespace, caller);
    const existing = this.#state.objects.list({ namespace }).find(({ name: it }) => {
      return it.kind === name.kind && it.name === name.name;
    });
    const change = {
      objects: existing === undefined ? 1 : 0,
      bytes: bytes - sizeOf(existing?.record.sizes ?? {}),
    };
    const findings = new Findings();
    const used = this.usage.ofNamespace(namespace);
    for (const resource of ["objects", "bytes"] as const) {
      const text = limits[resource];
      if (text === undefined || change[resource] <= 0) continue;
      const [total, limit] = [used[resource] + change[resource], limitAmount(resource, text)];
      if (total > limit)
        new Field(findings)
          .at("object")
          .invalid(exceeded(resource, `namespace "${namespace}"`, used[resource], total, limit));
    }
    findings.raise();
  }

  /**
   * Checks pods without a resource against the quota. `needed` is what they need in addition to what is counted already,
   * and `fields` names the field of the request for each amount. Default quotas don't apply, because the component that
   * creates such pods has limits of its own. @throws CoordinatorError INVALID.
   */
  checkPods(namespace: string, needed: Partial<Amounts>, fields: Readonly<Record<string, string>>): void {
    const findings = new Findings();
    const quota: Limits = this.#recordOf(namespace)?.quota ?? {};
    const used = this.usage.ofNamespace(namespace);
    for (const name of QUOTA_RESOURCES) {
      const [text, change = 0] = [quota[name], needed[name]];
      if (text === undefined || change <= 0) continue;
      const [sum, limit] = [used[name] + change, limitAmount(name, text)];
      if (sum > limit)
        findings.invalid(
          fields[name] ?? name,
          exceeded(name, `namespace "${namespace}"`, used[name], sum, limit),
        );
    }
    findings.raise();
  }

  /**
   * Checks a session with a pod. @throws CoordinatorError PERMISSION_DENIED unless the caller could have created the pod: a
   * command in a privileged container, or a connection from within the host's network, has the rights of the pod.
   */
  checkSession(
    pod: { readonly namespace: string; readonly name: string; readonly template: PodTemplate | undefined },
    caller: Caller,
  ): void {
    const policy = this.policyOf(pod.namespace, caller);
    if (pod.template === undefined || policy.profile === "privileged") return;
    const findings = new Findings();
    // The additional rules of `restricted` protect nothing that a session could reach.
    checkPolicy({ pod: pod.template, field: new Field(findings) }, { ...policy, profile: "baseline" });
    try {
      findings.raise();
    } catch (cause) {
      if (!(cause instanceof CoordinatorError)) throw cause;
      const reasons = (cause.violations ?? [])
        .slice(0, 3)
        .map(({ field, description }) => `${field}: ${description}`);
      throw new CoordinatorError(
        "PERMISSION_DENIED",
        `pod ${pod.name} has more rights than pods that this token may create: ${reasons.join("; ")}`,
        { cause },
      );
    }
  }

  policyOf(namespace: string, caller: Caller): EffectivePolicy {
    return policyFor(caller, namespace, this.#recordOf(namespace)?.policies ?? []);
  }

  /** Returns the fields of the stored resource's pods that its namespace's policy no longer allows. */
  violationsOf(record: ResourceRecord): readonly FieldViolation[] {
    return storedViolations(record, this.#recordOf(record.namespace)?.policies ?? []);
  }

  limitsOf(namespace: string, caller: Caller): Limits {
    return this.#limits(namespace, isNamespaced(caller, namespace));
  }

  #limits(namespace: string, namespaced: boolean): Limits {
    const own = this.#recordOf(namespace)?.quota ?? {};
    return namespaced ? { ...DEFAULT_LIMITS, ...own } : own;
  }

  hasQuota(namespace: string): boolean {
    return Object.keys(this.#recordOf(namespace)?.quota ?? {}).length > 0;
  }

  /**
   * Runs a check and the write that it permits under a lock of the namespace, so that concurrent requests can't exceed its
   * quota.
   */
  inTurn<T>(namespace: string, task: () => Promise<T>): Promise<T> {
    return this.#mutex.run(namespace, task);
  }

  #recordOf(namespace: string) {
    return this.#state.namespaces.get(namespaceKey(namespace))?.record;
  }
}

function checkResource(resource: ForageResource, field: Field, policy: EffectivePolicy): void {
  const placed = podOf(resource, field);
  if (placed !== undefined) checkPolicy(placed, policy);
}
