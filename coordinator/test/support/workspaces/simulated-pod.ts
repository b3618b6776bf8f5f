import { StopWorkspacePolicy } from "@forage/proto/core";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { PodEntry } from "../../../src/state/entries.ts";
import { aPod } from "../entries.ts";
import { broken } from "./life-rules.ts";

/** A pod on its way from creation to removal. */
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

  /** Returns the pod as the coordinator sees it; undefined if it has no pod. */
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

  /** One step further. */
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

  /** Its node is gone, or it was never given to one. */
  end(): void {
    this.#stage = "gone";
  }

  /** The node is gone with everything on it. */
  endWithNode(): void {
    if (this.#stage !== "none" && this.#stage !== "unbound") this.end();
  }
}
