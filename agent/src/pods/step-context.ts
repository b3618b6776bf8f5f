import type { PodVolumeSpec } from "../volumes/volumes.ts";
import type { PodOutcome, PodView } from "./decide/pod-view.ts";
import type { PodMemory, StartBlock } from "./pod.ts";

/** The effects of a step, except those that the observer and the image store track themselves. */
export interface StepEffect {
  /** Applied to the memory after the step has ended, because other steps may have changed the memory meanwhile. */
  readonly change?: Change;
  /** The memory must be on disk before the next step relies on it. */
  readonly durable?: true;
  /** The change removes the pod. It takes effect once no restart of the agent can start the pod again. */
  readonly final?: true;
  /** The outcome that the step has written to disk. */
  readonly savedOutcome?: PodOutcome | undefined;
  readonly published?: boolean;
  /** The specification whose content the volumes now show. */
  readonly volumesShown?: PodVolumeSpec | undefined;
  /** Set if the step has listed the runtime's containers. */
  readonly looked?: true;
}

export type Change = (memory: PodMemory) => PodMemory;

export interface StepContext {
  readonly view: PodView;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
  /** Aborts when the pod's goal is no longer to run. Work that has not begun is then skipped. */
  readonly goalSignal: AbortSignal;
  /**
   * Records a change for background steps, which continue only when it is on disk. Resolves when it is on disk or can't
   * be written.
   */
  readonly remember: (change: Change) => Promise<void>;
}

/** The pod waits for a precondition that is not the host's fault. */
export class StartBlockedError extends Error {
  readonly reason: StartBlock;

  constructor(reason: StartBlock, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "StartBlockedError";
    this.reason = reason;
  }
}
