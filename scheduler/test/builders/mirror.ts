import { Fleet } from "../../src/fleet.ts";
import { podKey } from "../../src/pod/pod-key.ts";
import type { NodeSpec, PodKey, PodSpec, Profile } from "../../src/types.ts";
import type { Bound, Cluster } from "../reference/filter.ts";

/** A fleet and a plain list of the same nodes and pods, which are changed together. */
export class Mirror {
  readonly fleet: Fleet;
  readonly #profile: Profile;
  readonly #nodes = new Map<string, NodeSpec>();
  #bound: { pod: PodSpec; node: string; terminating: boolean; start: number }[] = [];
  #starts = 0;

  constructor(profile: Profile) {
    this.#profile = profile;
    this.fleet = new Fleet({ profile });
  }

  get cluster(): Cluster {
    const bound = this.#bound.flatMap((b): Bound[] => {
      const node = this.#nodes.get(b.node);
      return node === undefined ? [] : [{ ...b, node }];
    });
    return { nodes: [...this.#nodes.values()], bound };
  }

  get nodeNames(): string[] {
    return [...this.#nodes.keys()];
  }

  get podKeys(): PodKey[] {
    return this.#bound.map((b) => podKey(b.pod));
  }

  setNode(spec: NodeSpec): void {
    this.fleet.setNode(spec);
    this.#nodes.set(spec.name, spec);
  }

  removeNode(name: string): void {
    this.fleet.removeNode(name);
    this.#nodes.delete(name);
    this.#bound = this.#bound.filter((b) => b.node !== name);
  }

  bind(pod: PodSpec, node: string): void {
    this.fleet.bind(pod, node);
    this.#bound.push({ pod, node, terminating: false, start: this.#starts++ });
  }

  unbind(key: PodKey): void {
    this.fleet.unbind(key);
    this.#bound = this.#bound.filter((b) => podKey(b.pod) !== key);
  }

  setTerminating(key: PodKey, terminating = true): void {
    this.fleet.setTerminating(key, terminating);
    for (const b of this.#bound) if (podKey(b.pod) === key) b.terminating = terminating;
  }

  /** Gives a bound pod another specification. It keeps its name, its node and its age. */
  update(key: PodKey, template: PodSpec): void {
    for (const b of this.#bound) {
      if (podKey(b.pod) !== key) continue;
      b.pod = { ...template, namespace: b.pod.namespace, name: b.pod.name };
      this.fleet.update(b.pod);
    }
  }

  /** Returns a new fleet with the same nodes and pods, the nodes in another order. */
  rebuild(): Fleet {
    const fleet = new Fleet({ profile: this.#profile });
    for (const node of [...this.#nodes.values()].reverse()) fleet.setNode(node);
    for (const b of this.#bound) {
      fleet.bind(b.pod, b.node);
      if (b.terminating) fleet.setTerminating(podKey(b.pod));
    }
    return fleet;
  }
}
