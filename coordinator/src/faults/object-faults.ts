import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import type { EventRecorder } from "../model/event.ts";

/** The object that a step is about. */
export interface FaultSubject {
  /** "pod", "node", or a kind of resource or object. */
  readonly kind: string;
  /** Empty for nodes. */
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
  /** The loop that takes the steps, for logs and events. */
  readonly loop: string;
  /** Default: errors show only as events. */
  readonly log?: Log | undefined;
  readonly events?: EventRecorder | undefined;
}

/** Objects whose last error is remembered. Beyond it the oldest is forgotten, and its next error is reported once more. */
const MAX_REMEMBERED = 10_000;

/**
 * Keeps an error in the handling of one object from stopping the others: a loop that handles many objects in one run takes the step of
 * each through `attempt`. An error becomes a log line and an event of the object, once until the object succeeds or fails differently.
 */
export class ObjectFaults {
  readonly #options: ObjectFaultsOptions;
  readonly #messages = new Map<string, string>();

  constructor(options: ObjectFaultsOptions) {
    this.#options = options;
  }

  /** Returns what the step returns, or undefined after an error. */
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

  /** The object has been handled, or is gone. */
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
