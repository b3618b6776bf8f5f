import type { PodClass } from "../pod/pod-class.ts";
import { SchedulerError } from "../scheduler-error.ts";
import type { PodKey } from "../types.ts";
import type { NodeIndex } from "./node-index.ts";
import type { NodeTable } from "./node-table.ts";
import { resize } from "./resize.ts";

/** A dense number for a bound pod, reused after the pod is removed. */
export type PodIndex = number;

const FIRST_CAPACITY = 64;

/** Bound pods in columns, each linked into the lists of its node and of its identity. */
export class PodTable {
  readonly indexOf = new Map<PodKey, PodIndex>();
  readonly keys: (PodKey | undefined)[] = [];
  readonly classes: (PodClass | undefined)[] = [];
  node = new Int32Array(FIRST_CAPACITY);
  terminating = new Uint8Array(FIRST_CAPACITY);
  /** The rank of the pod's binding; smaller is earlier. */
  start = new Float64Array(FIRST_CAPACITY);
  nextOnNode = new Int32Array(FIRST_CAPACITY);
  nextOfIdentity = new Int32Array(FIRST_CAPACITY);
  readonly #nodes: NodeTable;
  #previousOnNode = new Int32Array(FIRST_CAPACITY);
  #previousOfIdentity = new Int32Array(FIRST_CAPACITY);
  #capacity = FIRST_CAPACITY;
  #end = 0;
  #starts = 0;
  readonly #spare: PodIndex[] = [];
  /** The number of bound pods by priority. */
  readonly #priorities = new Map<number, number>();

  constructor(nodes: NodeTable) {
    this.#nodes = nodes;
  }

  add(key: PodKey, podClass: PodClass, node: NodeIndex): PodIndex {
    const pod = this.#spare.pop() ?? this.#end++;
    if (pod >= this.#capacity) this.#grow();
    this.indexOf.set(key, pod);
    this.keys[pod] = key;
    this.classes[pod] = podClass;
    this.node[pod] = node;
    this.terminating[pod] = 0;
    this.start[pod] = this.#starts++;
    this.#link(pod, podClass, node);
    return pod;
  }

  remove(pod: PodIndex): void {
    this.#unlink(pod);
    this.indexOf.delete(this.key(pod));
    this.keys[pod] = undefined;
    this.classes[pod] = undefined;
    this.#spare.push(pod);
  }

  /** Changes the pod's class. The pod keeps its node and its rank. */
  setClass(pod: PodIndex, podClass: PodClass): void {
    this.#unlink(pod);
    this.classes[pod] = podClass;
    this.#link(pod, podClass, this.node[pod] ?? 0);
  }

  /** Reports whether any bound pod has a lower priority. */
  hasBelow(priority: number): boolean {
    for (const known of this.#priorities.keys()) if (known < priority) return true;
    return false;
  }

  key(pod: PodIndex): PodKey {
    const key = this.keys[pod];
    if (key === undefined) throw new SchedulerError("unknown_pod", `no pod at ${pod}`);
    return key;
  }

  classOf(pod: PodIndex): PodClass {
    const podClass = this.classes[pod];
    if (podClass === undefined) throw new SchedulerError("unknown_pod", `no pod at ${pod}`);
    return podClass;
  }

  *on(node: NodeIndex): Generator<PodIndex> {
    for (let pod = this.#nodes.firstPod[node] ?? -1; pod >= 0; pod = this.nextOnNode[pod] ?? -1) yield pod;
  }

  #link(pod: PodIndex, { identity, priority }: PodClass, node: NodeIndex): void {
    const onNode = this.#nodes.firstPod[node] ?? -1;
    this.nextOnNode[pod] = onNode;
    this.#previousOnNode[pod] = -1;
    if (onNode >= 0) this.#previousOnNode[onNode] = pod;
    this.#nodes.firstPod[node] = pod;
    const ofIdentity = identity.firstPod;
    this.nextOfIdentity[pod] = ofIdentity;
    this.#previousOfIdentity[pod] = -1;
    if (ofIdentity >= 0) this.#previousOfIdentity[ofIdentity] = pod;
    identity.firstPod = pod;
    identity.pods++;
    this.#priorities.set(priority, (this.#priorities.get(priority) ?? 0) + 1);
  }

  #unlink(pod: PodIndex): void {
    const { identity, priority } = this.classOf(pod);
    const [next, previous] = [this.nextOnNode[pod] ?? -1, this.#previousOnNode[pod] ?? -1];
    if (next >= 0) this.#previousOnNode[next] = previous;
    if (previous >= 0) this.nextOnNode[previous] = next;
    else this.#nodes.firstPod[this.node[pod] ?? 0] = next;
    const [nextOf, previousOf] = [this.nextOfIdentity[pod] ?? -1, this.#previousOfIdentity[pod] ?? -1];
    if (nextOf >= 0) this.#previousOfIdentity[nextOf] = previousOf;
    if (previousOf >= 0) this.nextOfIdentity[previousOf] = nextOf;
    else identity.firstPod = nextOf;
    identity.pods--;
    const left = (this.#priorities.get(priority) ?? 0) - 1;
    if (left > 0) this.#priorities.set(priority, left);
    else this.#priorities.delete(priority);
  }

  #grow(): void {
    // Grows by half instead of doubling, because with tens of thousands of pods unused memory costs more than copying.
    this.#capacity = Math.ceil(this.#capacity * 1.5);
    const size = this.#capacity;
    this.node = resize(this.node, new Int32Array(size));
    this.terminating = resize(this.terminating, new Uint8Array(size));
    this.start = resize(this.start, new Float64Array(size));
    this.nextOnNode = resize(this.nextOnNode, new Int32Array(size));
    this.nextOfIdentity = resize(this.nextOfIdentity, new Int32Array(size));
    this.#previousOnNode = resize(this.#previousOnNode, new Int32Array(size));
    this.#previousOfIdentity = resize(this.#previousOfIdentity, new Int32Array(size));
  }
}
