import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { CoordinatorError } from "../../errors.ts";
import type { WorkspaceView } from "../view.ts";
import { noSuchWorkspace } from "../writer.ts";

/**
 * Resolves with the first defined result of `check` for the instance. Rejects when the call is
 * cancelled, or with the error of `check`.
 */
export function waitFor<T>(
  view: WorkspaceView,
  id: string,
  signal: AbortSignal,
  check: (record: InstanceRecord) => T | undefined,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const evaluate = (): void => {
    try {
      const entry = view.instance(id);
      if (entry === undefined) throw noSuchWorkspace(id);
      const result = check(entry.record);
      if (result !== undefined) resolve(result);
    } catch (error) {
      reject(error);
    }
  };
  const unsubscribe = view.subscribe((changes) => {
    if (changes.some((change) => change.id === id)) evaluate();
  });
  const abort = (): void =>
    reject(new CoordinatorError("ABORTED", `the call about workspace ${id} was cancelled`));
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  evaluate();
  return promise.finally(() => {
    unsubscribe();
    signal.removeEventListener("abort", abort);
  });
}
