import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import type { EventRecorder } from "../model/event.ts";

/** The object that a step handles. */
export interface FaultSubject {
  /** The kind: "pod", "node", or a kind of resource or object. */
  readonly kind: string;
  /** The namespace; empty for nodes. */
  readonly namespace: string;
  readonly name: string;
}

/** Returns the subject for a pod of the view. */
export function podSubject({
  record,
}: {
  readonly record: Pick<FaultSubject, "namespace" | "name">;
}): FaultSubject {
  return { kind: "pod", namespace: record.namespace, name: record.name };
}

export interface ObjectFaultsOptions {
  /** The name of the loop for logs and events. */
  readonly loop: string;
  /** The log. Default: errors are reported only as events. */
  readonly log?: Log | undefined;
  readonly events?: EventRecorder | undefined;
}

/**
 * The most objects whose last error is kept. Beyond it, the oldest is dropped, and its next error
 * is reported again.
 */
const MAX_REMEMBERED = 10_000;

/**
 * Isolates errors in the handling of single objects. A loop that handles many objects runs the step
 * of each through `attempt`, and continues after an error. An error is logged and recorded as an
 * event of the object, once until the object succeeds or fails differently.
 */
export class ObjectFaults {
  readonly #options: ObjectFaultsOptions;
  readonly #messages = new Map<string, string>();

  constructor(options: ObjectFaultsOptions) {
    this.#options = options;
  }

  /** Runs the step. Returns its result, or undefined after an error. */
  attempt<T>(subject: FaultSubject, step: () => T): T | undefined {
    try {
      const result = step();
      this.clear(subject);
      return result;
    } catch (error) {
      this.report(subject, error);
      return undefined;
    }
  }

  /** Clears the error of an object that was handled or removed. */
  clear(subject: FaultSubject): void {
    if (this.#messages.size > 0) this.#messages.delete(keyOf(subject));
  }

  report(subject: FaultSubject, error: unknown): void {
    const { loop, log, events } = this.#options;
    const key = keyOf(subject);
    const message = messageOf(error);
    if (this.#messages.get(key) === message) return;
    this.#messages.delete(key);
    this.#messages.set(key, message);
    if (this.#messages.size > MAX_REMEMBERED) {
      const [oldest] = this.#messages.keys();
      if (oldest !== undefined) this.#messages.delete(oldest);
    }
    log?.error({ event: "object-failed", loop, ...subject, err: error });
    events?.record({
      ...subject,
      type: "Warning",
      reason: "ReconcileFailed",
      message: `the coordinator's ${loop} loop can't handle it: ${message}`,
    });
  }
}

function keyOf({ kind, namespace, name }: FaultSubject): string {
  return `${kind} ${namespace}/${name}`;
}
