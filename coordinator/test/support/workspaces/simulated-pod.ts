import { StopWorkspacePolicy } from "@forage/proto/core";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { PodEntry } from "../../../src/state/entries.ts";
import { aPod } from "../entries.ts";
import { broken } from "./life-rules.ts";

/** The stage of a pod between creation and removal. */
type PodStage = "none" | "unbound" | "bound" | "running" | "exited" | "gone";

/** The pod of one workspace. */
export class SimulatedPod {
  #stage: PodStage = "none";
  #stopping = false;
  #exitCode = 0;

  get isRunning(): boolean {
    return this.#stage === "running";
  }

  get hasEnded(): boolean {
    return this.#stage === "gone" || this.#stage === "none";
  }

  /** Returns the pod's entry in the view; undefined if there is no pod. */
  entry(contentIsReady: boolean): PodEntry | undefined {
    if (this.hasEnded) return undefined;
    const ready = this.isRunning && contentIsReady;
    const exited = this.#exitCode === 0 ? PodPhase.SUCCEEDED : PodPhase.FAILED;
    const entry = aPod({
      name: "ws-instance",
      namespace: "workspaces",
      kind: "workspace",
      node: this.#stage === "unbound" ? "" : "n1",
      stopping: this.#stopping,
      status: {
        phase: this.#stage === "exited" ? exited : ready ? PodPhase.RUNNING : PodPhase.PENDING,
        ready,
      },
    });
    return { ...entry, record: { ...entry.record, uid: "uid" } };
  }

  create({ stop }: InstanceRecord): void {
    if (this.#stage !== "none") broken("a second pod is created");
    if (stop !== undefined) broken("a pod is created after the stop");
    this.#stage = "unbound";
  }

  /** Advances the pod by one stage. */
  move(node: { readonly isUp: boolean; readonly isRemoved: boolean; readonly hasContent: boolean }): void {
    if (this.#stage === "unbound" && !this.#stopping) this.#stage = node.isRemoved ? "unbound" : "bound";
    else if (!node.isUp) return;
    else if (this.#stopping) this.end();
    else if (this.#stage === "bound" && node.hasContent) this.#stage = "running";
  }

  stop({ stop }: InstanceRecord, graceSeconds: number): void {
    if (this.#stopping) broken("the pod is stopped twice");
    const isHasty = stop?.policy === StopWorkspacePolicy.IMMEDIATELY;
    if (graceSeconds !== (isHasty ? 1 : 30)) broken(`the pod has ${graceSeconds} s to stop`);
    this.#stopping = true;
  }

  exit(exitCode: number): void {
    if (!this.isRunning) return;
    this.#exitCode = exitCode;
    this.#stage = "exited";
  }

  /** Removes the pod because its node was removed, or because it never had one. */
  end(): void {
    this.#stage = "gone";
  }

  /** Removes the pod together with its node. */
  endWithNode(): void {
    if (this.#stage !== "none" && this.#stage !== "unbound") this.end();
  }
}
