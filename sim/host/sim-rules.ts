import type { Pod, PodContainer } from "../../agent/src/pods/pod.ts";
import {
  allContainers,
  initContainersOf,
  mainOf,
  roleOf,
  sidecarsOf,
} from "../../agent/src/pods/pod-containers.ts";
import { keyOf, nameOf, podOf, type SimContainer } from "./sim-container.ts";
import type { SimHost, SimWitness } from "./sim-host.ts";

/** The events in one network namespace. */
interface Stage {
  /** Init containers that succeeded. */
  readonly done: Set<string>;
  /** Sidecars that were ready at some time and whose hook was done. */
  readonly up: Set<string>;
  begun: boolean;
}

/** `ending`: the pod is stopping or evicted. `lost`: its memory is lost as well, or it was cut off from its network. */
export type PodFate = "kept" | "ending" | "lost";

/** Watches a host and remembers the first violation of a rule. */
export class SimRules implements SimWitness {
  readonly #host: SimHost;
  /** All pods that ever existed. */
  readonly #pods: ReadonlyMap<string, Pod>;
  readonly #fateOf: (podUid: string) => PodFate;
  readonly #stages = new Map<string, Stage>();
  violation: string | undefined;

  constructor(host: SimHost, pods: ReadonlyMap<string, Pod>, fateOf: (podUid: string) => PodFate) {
    this.#host = host;
    this.#pods = pods;
    this.#fateOf = fateOf;
  }

  started(container: SimContainer): void {
    const keys = this.#host.running().map(keyOf);
    if (new Set(keys).size !== keys.length) this.#break(`two at once: ${keys.sort().join(" ")}`);
    const pod = this.#pods.get(podOf(container));
    const spec = pod && specOf(pod, container);
    if (pod === undefined || spec === undefined) {
      this.#break(`${keyOf(container)} of no known pod`);
      return;
    }
    const stage = this.#stageOf(container);
    this.#checkOrder(pod, container, stage);
    const targets = new Set(container.spec.binds.map(({ target }) => target));
    for (const { mountPath } of spec.mounts ?? []) {
      if (!targets.has(mountPath)) this.#break(`${keyOf(container)} began without its volume`);
    }
    this.answered(container);
  }

  ended(container: SimContainer): void {
    const pod = this.#pods.get(podOf(container));
    if (pod && roleOf(pod, nameOf(container)) === "init" && container.exitCode === 0) {
      this.#stageOf(container).done.add(nameOf(container));
    }
  }

  answered(container: SimContainer): void {
    if (container.postStarts > 1) this.#break(`${keyOf(container)}: its hook ran twice`);
    const pod = this.#pods.get(podOf(container));
    const spec = pod && specOf(pod, container);
    if (spec === undefined) return;
    const hookIsDone = spec.hooks?.postStart === undefined || container.postStart === "done";
    const isUp = spec.probes?.startup === undefined || container.isUp;
    if (hookIsDone && isUp) this.#stageOf(container).up.add(nameOf(container));
  }

  killed(container: SimContainer, how: "stop" | "remove"): void {
    const uid = podOf(container);
    const pod = this.#pods.get(uid);
    if (pod === undefined) return;
    const spec = specOf(pod, container);
    const isWell = !container.broken && !container.excused && !["tried", "ran"].includes(container.postStart);
    const fate = this.#fateOf(uid);
    if (isWell && fate === "kept" && !isLeftOver(pod, container, this.#host)) {
      this.#break(`${keyOf(container)} was ended although it was healthy`);
    }
    const isOwed = spec?.hooks?.preStop !== undefined && !container.preStopTried;
    if (how === "stop" && isOwed && fate !== "lost") this.#break(`${keyOf(container)} missed its hook`);
  }

  released(podUid: string): void {
    const running = this.#host.running().filter((it) => podOf(it) === podUid);
    if (running.length > 0) this.#break(`volumes of ${podUid} were taken from under its containers`);
  }

  #checkOrder(pod: Pod, container: SimContainer, stage: Stage): void {
    const name = nameOf(container);
    const inits = initContainersOf(pod).map((it) => it.name);
    const role = roleOf(pod, name);
    const before = role === "init" ? inits.slice(0, inits.indexOf(name)) : inits;
    const missing = before.filter((it) => !stage.done.has(it));
    if (missing.length > 0) this.#break(`${keyOf(container)} began before ${missing.join(", ")}`);
    if (role === "init" && (stage.begun || stage.done.has(name)))
      this.#break(`${keyOf(container)} ran again`);
    if (role !== "init") stage.begun = true;
    const down = sidecarsOf(pod).filter((it) => !stage.up.has(it.name));
    if (role === "main" && down.length > 0) {
      this.#break(`${keyOf(container)} began before ${down.map((it) => it.name).join(", ")}`);
    }
  }

  #stageOf({ spec }: SimContainer): Stage {
    const known = this.#stages.get(spec.networkNamespace);
    const stage = known ?? { done: new Set(), up: new Set(), begun: false };
    this.#stages.set(spec.networkNamespace, stage);
    return stage;
  }

  #break(what: string): void {
    this.violation ??= what;
  }
}

function specOf(pod: Pod, container: SimContainer): PodContainer | undefined {
  return allContainers(pod).find((it) => it.name === nameOf(container));
}

/** Reports whether the container is a sidecar of a pod that has run to its end. */
function isLeftOver(pod: Pod, container: SimContainer, host: SimHost): boolean {
  if (pod.restartPolicy === "Always" || roleOf(pod, nameOf(container)) !== "sidecar") return false;
  const main = `${pod.uid}/${mainOf(pod)?.name}`;
  return !host.running().some((it) => keyOf(it) === main);
}
