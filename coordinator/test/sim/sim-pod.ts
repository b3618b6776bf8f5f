import {
  type ContainerStatus,
  type ContainerTerminated,
  type PodAssignment,
  PodPhase,
  type PodStatus,
} from "@forage/proto/forage/agent/v1/agent";
import { toTimestamp } from "../../src/model/timestamp.ts";
import type { Random } from "../support/random.ts";
import { endOf, kindOf, type ProgramKind, pullMs } from "./programs.ts";

/** What a pod needs of its host. */
export interface PodHost {
  readonly random: Random;
  nowMs(): number;
  /** Doesn't run when the host went down meanwhile. */
  after(delayMs: number, run: () => void): () => void;
  hasImage(image: string): boolean;
  gotImage(image: string): void;
  registryUp(): boolean;
  /** Its status is another. */
  changed(pod: SimPod): void;
  /** A container of it starts. */
  starts(pod: SimPod): void;
  /** Its container has ended. */
  ended(pod: SimPod, exitCode: number): void;
  /** Nothing of it is left. */
  removed(pod: SimPod): void;
}

type Stage =
  | "pulling"
  | "image-failed"
  | "creating"
  | "running"
  | "ready"
  | "back-off"
  | "ended"
  | "stopping"
  | "removed";

const backOffBaseMs = 10_000;
const backOffCapMs = 300_000;
const imageRetryCapMs = 120_000;
const goodRunMs = 600_000;

/** One pod on a host: a model of what the agent does with one, with a single container. */
export class SimPod {
  assignment: PodAssignment;
  stage: Stage = "pulling";
  /** Part of its status. */
  message = "";
  readonly #host: PodHost;
  #begun = false;
  #restarts = 0;
  #crashes = 0;
  #pullFailures = 0;
  #startedMs = 0;
  #waiting = "ContainerCreating";
  #termination: ContainerTerminated | undefined;
  #cancel: () => void = () => {};
  #cancelReady: () => void = () => {};

  constructor(assignment: PodAssignment, host: PodHost) {
    this.assignment = assignment;
    this.#host = host;
    this.#pull();
  }

  get uid(): string {
    return this.assignment.uid;
  }

  get running(): boolean {
    return this.stage === "running" || this.stage === "ready";
  }

  /** It ended for good. */
  get over(): boolean {
    return this.stage === "ended";
  }

  stop(): void {
    if (this.stage === "stopping" || this.stage === "removed") return;
    const graceMs = this.running ? 100 + this.#host.random.below(8_000) : 50;
    this.#cancelReady();
    this.#become("stopping", graceMs, () => {
      this.#become("removed");
      this.#host.removed(this);
    });
  }

  /** Its container ends. */
  end(exitCode: number, reason: string): void {
    if (!this.running) return;
    const nowMs = this.#host.nowMs();
    this.#host.ended(this, exitCode);
    this.#cancelReady();
    this.#termination = {
      exitCode,
      signal: 0,
      reason,
      message: exitCode === 0 ? "" : "last words",
      startedAt: toTimestamp(this.#startedMs),
      finishedAt: toTimestamp(nowMs),
    };
    if (this.#isOver(exitCode)) {
      this.#become("ended");
      return;
    }
    this.#crashes = nowMs - this.#startedMs >= goodRunMs ? 1 : this.#crashes + 1;
    const waitMs = this.#crashes === 1 ? 0 : Math.min(backOffCapMs, backOffBaseMs * 2 ** (this.#crashes - 2));
    this.#waiting = waitMs === 0 ? "ContainerCreating" : "CrashLoopBackOff";
    this.#become("back-off", waitMs, () => this.#create());
  }

  /** The host is up again: nothing runs, and what is written down still holds. */
  rebooted(): void {
    if (this.stage === "ended" || this.stage === "removed") return;
    if (this.stage === "stopping") {
      this.#become("removed");
      this.#host.removed(this);
      return;
    }
    if (this.running) this.end(255, "HostRebooted");
    else this.#pull();
  }

  status(): PodStatus {
    const { uid, namespace, name, specHash } = this.assignment;
    const ready = this.stage === "ready";
    const gone = this.stage === "removed";
    const container = this.#container();
    return {
      uid,
      namespace,
      name,
      phase: this.#phase(),
      ready,
      reason: container.state?.$case === "waiting" ? container.state.value.reason : "",
      message: this.message,
      podIp: this.#begun && !gone ? "10.0.0.1" : "",
      podIps: [],
      specHash,
      containers: gone ? [] : [container],
      hostPorts: [],
      startedAt: this.#begun ? toTimestamp(this.#startedMs) : undefined,
      readyAt: undefined,
    };
  }

  #pull(): void {
    const { image, kind } = this.#program();
    if (this.#host.hasImage(image)) {
      this.#create();
      return;
    }
    this.#waiting = "ImagePull";
    this.#become("pulling", pullMs(kind, this.#host.random), () => this.#pulled(image, kind));
  }

  #pulled(image: string, kind: ProgramKind): void {
    if (kind !== "missing" && this.#host.registryUp()) {
      this.#pullFailures = 0;
      this.#host.gotImage(image);
      this.#create();
      return;
    }
    this.#waiting = this.#host.registryUp() ? "ErrImageNotFound" : "ImagePullBackOff";
    this.#pullFailures++;
    const waitMs = Math.min(imageRetryCapMs, 5_000 * 2 ** (this.#pullFailures - 1));
    this.#become("image-failed", waitMs, () => this.#pull());
  }

  #create(): void {
    this.#waiting = "ContainerCreating";
    this.#become("creating", 50 + this.#host.random.below(800), () => this.#start());
  }

  #start(): void {
    const { random } = this.#host;
    if (this.#begun) this.#restarts++;
    this.#begun = true;
    this.#startedMs = this.#host.nowMs();
    this.#host.starts(this);
    const { kind } = this.#program();
    const end = endOf(kind, random);
    this.#become("running", end?.afterMs ?? 0, () => {
      if (end !== undefined) this.end(end.exitCode, end.exitCode === 0 ? "Completed" : "Error");
    });
    if (kind === "unready") return;
    this.#cancelReady = this.#host.after(random.chance(0.5) ? 0 : random.below(3_000), () => {
      if (this.stage !== "running") return;
      this.stage = "ready";
      this.#host.changed(this);
    });
  }

  /** Whether its restart policy lets it end. */
  #isOver(exitCode: number): boolean {
    const policy = this.assignment.template?.podConfig?.restartPolicy ?? "";
    return policy === "Never" || (policy === "OnFailure" && exitCode === 0);
  }

  #program(): { readonly image: string; readonly kind: ProgramKind } {
    const image = this.assignment.template?.container?.image ?? "";
    return { image, kind: kindOf(image) };
  }

  #phase(): PodPhase {
    if (this.stage === "removed") return PodPhase.REMOVED;
    if (this.stage === "stopping") return PodPhase.STOPPING;
    if (this.stage === "ended")
      return this.#termination?.exitCode === 0 ? PodPhase.SUCCEEDED : PodPhase.FAILED;
    return this.#begun ? PodPhase.RUNNING : PodPhase.PENDING;
  }

  #container(): ContainerStatus {
    const { container } = this.assignment.template ?? {};
    const running = this.running;
    return {
      name: container?.name ?? "",
      containerId: running ? `${this.uid}-${this.#restarts}` : "",
      image: container?.image ?? "",
      state: this.#state(),
      lastTermination: this.stage === "ended" ? undefined : this.#termination,
      restartCount: this.#restarts,
      ready: this.stage === "ready",
      terminations: this.#termination === undefined || this.stage === "ended" ? [] : [this.#termination],
      init: false,
      started: running,
    };
  }

  #state(): ContainerStatus["state"] {
    if (this.running) return { $case: "running", value: { startedAt: toTimestamp(this.#startedMs) } };
    if (this.stage === "ended" && this.#termination !== undefined)
      return { $case: "terminated", value: this.#termination };
    return { $case: "waiting", value: { reason: this.#waiting, message: "", retryAt: undefined } };
  }

  #become(stage: Stage, delayMs?: number, next?: () => void): void {
    this.#cancel();
    this.stage = stage;
    this.#host.changed(this);
    if (delayMs !== undefined && next !== undefined) this.#cancel = this.#host.after(delayMs, next);
  }
}
