import type { PodVolumeSpec } from "../volumes/volumes.ts";
import type { PodOutcome, PodView } from "./decide/pod-view.ts";
import type { PodMemory, StartBlock } from "./pod.ts";

/** The changes of a step, apart from those that the observer and the image store track themselves. */
export interface StepEffect {
  /** Applied to what is remembered when the step has ended, since others may have changed it meanwhile. */
  readonly change?: Change;
  /** The memory must be on disk before the next step relies on it. */
  readonly durable?: true;
  /** The change removes the pod, and takes effect once no restart of the agent can start it again. */
  readonly final?: true;
  /** The outcome that is on disk now. */
  readonly savedOutcome?: PodOutcome | undefined;
  readonly published?: boolean;
  /** The specification whose content the volumes show at present. */
  readonly volumesShown?: PodVolumeSpec | undefined;
  /** Set once the runtime's list of containers was read. */
  readonly looked?: true;
}

export type Change = (memory: PodMemory) => PodMemory;

export interface StepContext {
  readonly view: PodView;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
  /** Aborts when the pod is no longer to run: what has not begun need not begin. */
  readonly goalSignal: AbortSignal;
  /**
   * Records a change for background steps, which must not go on before it is on disk. Resolves when it is on disk or can't be
   * written.
   */
  readonly remember: (change: Change) => Promise<void>;
}

/** The pod waits for something that isn't the host's fault. */
export class StartBlockedError extends Error {
  readonly reason: StartBlock;

  constructor(reason: StartBlock, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "StartBlockedError";
    this.reason = reason;
  }
}
