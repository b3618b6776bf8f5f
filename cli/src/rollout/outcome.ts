import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { EXIT, type ExitCode } from "../exit-code.ts";

/** The state of one resource of a rollout. `reason` is available only from GetRollout. */
export interface ResourceState {
  readonly kind: string;
  readonly name: string;
  readonly status: RolloutStatus;
  readonly message: string;
  readonly action?: string;
  readonly reason?: string;
  /** The present state of the resource if its rollout has ended. */
  readonly now?: string;
}

export function isFinal(status: RolloutStatus): boolean {
  return (
    status === RolloutStatus.SUCCEEDED ||
    status === RolloutStatus.FAILED ||
    status === RolloutStatus.ROLLED_BACK
  );
}

/**
 * Reports whether all resources have reached a final state. The coordinator records the end of the
 * rollout slightly later.
 */
export function isOver({
  finished,
  resources,
}: {
  readonly finished: boolean;
  readonly resources: readonly ResourceState[];
}): boolean {
  return finished || (resources.length > 0 && resources.every(({ status }) => isFinal(status)));
}

/** Returns the exit code of the worst resource; 0 only if all succeeded. */
export function outcomeOf(resources: readonly ResourceState[]): ExitCode {
  return worst(resources.map(outcomeOfOne));
}

/**
 * Returns the worst of exit codes. A failure is worse than a rollback, which is worse than a
 * resource without a node: more capacity would not fix the former.
 */
export function worst(codes: readonly ExitCode[]): ExitCode {
  const order: readonly ExitCode[] = [EXIT.failed, EXIT.rolledBack, EXIT.notPlaced, EXIT.timedOut];
  return order.find((code) => codes.includes(code)) ?? EXIT.ok;
}

export function statusWord(status: RolloutStatus): string {
  switch (status) {
    case RolloutStatus.PENDING:
      return "pending";
    case RolloutStatus.IN_PROGRESS:
      return "in progress";
    case RolloutStatus.SUCCEEDED:
      return "done";
    case RolloutStatus.FAILED:
      return "failed";
    case RolloutStatus.ROLLED_BACK:
      return "rolled back";
    default:
      // This includes a status that only a newer coordinator has.
      return "unknown";
  }
}

function outcomeOfOne({ status, reason }: ResourceState): ExitCode {
  if (status === RolloutStatus.SUCCEEDED) return EXIT.ok;
  if (status === RolloutStatus.ROLLED_BACK) return EXIT.rolledBack;
  return reason === "unschedulable" ? EXIT.notPlaced : EXIT.failed;
}
