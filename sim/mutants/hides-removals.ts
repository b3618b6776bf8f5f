import { StatusOutbox as Real } from "../../agent/src/link/status-outbox.ts";

export * from "../../agent/src/link/status-outbox.ts";

/** Never reports that a pod was removed. */
export class StatusOutbox extends Real {
  override put(status: Parameters<Real["put"]>[0]): void {
    if (status.phase !== "REMOVED") super.put(status);
  }
}
