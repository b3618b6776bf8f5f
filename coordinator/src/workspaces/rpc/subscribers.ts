import { type SubscribeRequest, SubscribeResponse, WorkspacePhase } from "@forage/proto/core";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { CoordinatorError } from "../../errors.ts";
import type { Sink } from "../../rpc/push.ts";
import type { InstanceChange, WorkspaceView } from "../view.ts";
import { matchesFilter } from "./filter.ts";
import type { StatusReader } from "./status-reader.ts";

export interface SubscribersOptions {
  readonly view: WorkspaceView;
  readonly statuses: StatusReader;
  /** The limits that tests lower. */
  readonly maxSubscribers?: number;
  readonly maxPending?: number;
}

/**
 * Gitpod has a bridge and a proxy for each cluster; the limit leaves room for about a thousand of
 * them.
 */
const MAX_SUBSCRIBERS = 2_000;
/**
 * The most pending records of one subscriber. They are shared by reference, so a subscriber that
 * never reads occupies a few megabytes before its stream fails.
 */
const MAX_PENDING = 20_000;

/** The header of a response that belongs to the state at the time of the call. */
export const SNAPSHOT_HEADER = "forage-snapshot";
/** The header with the number of such responses that follow; 0 in the last one. */
export const REMAINING_HEADER = "forage-snapshot-remaining";

/**
 * Publishes statuses: all present ones first, then changes. A slow subscriber receives only the
 * newest status of each workspace.
 */
export class Subscribers {
  readonly #options: SubscribersOptions;
  readonly #open = new Set<Subscriber>();
  readonly #unsubscribe: () => void;

  constructor(options: SubscribersOptions) {
    this.#options = options;
    this.#unsubscribe = options.view.subscribe((changes) => this.#publish(changes));
  }

  get count(): number {
    return this.#open.size;
  }

  /** Adds a subscriber. Returns a function that removes it. Throws RESOURCE_EXHAUSTED. */
  add({ mustMatch }: SubscribeRequest, withToken: boolean, sink: Sink<SubscribeResponse>): () => void {
    const { view, statuses, maxSubscribers = MAX_SUBSCRIBERS, maxPending = MAX_PENDING } = this.#options;
    if (this.#open.size >= maxSubscribers)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `there are ${maxSubscribers} subscribers already: end some first`,
      );
    const matches = (record: InstanceRecord): boolean => matchesFilter(record, mustMatch);
    const present = view.instances().flatMap(({ record }) => (matches(record) ? [record] : []));
    const subscriber = new Subscriber({ matches, statuses, withToken, sink, maxPending });
    this.#open.add(subscriber);
    subscriber.start(present);
    return () => {
      subscriber.stop();
      this.#open.delete(subscriber);
    };
  }

  close(): void {
    this.#unsubscribe();
    for (const subscriber of this.#open) subscriber.stop();
    this.#open.clear();
  }

  #publish(changes: readonly InstanceChange[]): void {
    for (const { before, after, type } of changes) {
      if (type !== "instance" || after === undefined) continue;
      if (before?.record.statusVersion === after.record.statusVersion) continue;
      // The status was published when the instance stopped.
      if (before?.record.phase === WorkspacePhase.STOPPED) continue;
      for (const subscriber of this.#open) subscriber.offer(after.record);
    }
  }
}

interface SubscriberOptions {
  readonly matches: (record: InstanceRecord) => boolean;
  readonly statuses: StatusReader;
  readonly withToken: boolean;
  readonly sink: Sink<SubscribeResponse>;
  readonly maxPending: number;
}

/**
 * One stream. At most one message is being sent; meanwhile, the newest record of each changed
 * workspace is kept.
 */
class Subscriber {
  readonly #options: SubscriberOptions;
  /**
   * Pending records by instance, in the order of changes: a workspace that changes again moves to
   * the end.
   */
  readonly #pending = new Map<string, InstanceRecord>();
  #remaining = 0;
  #isSending = false;
  #isOver = false;

  constructor(options: SubscriberOptions) {
    this.#options = options;
  }

  start(present: readonly InstanceRecord[]): void {
    this.#remaining = present.length;
    for (const record of present) this.#pending.set(record.id, record);
    this.#sendNext();
  }

  offer(record: InstanceRecord): void {
    if (this.#isOver || !this.#options.matches(record)) return;
    // While the present statuses are being sent, a change keeps its workspace's position, so that
    // each is sent before any change.
    const isFirst = this.#remaining > 0 && this.#pending.has(record.id);
    if (!isFirst) this.#pending.delete(record.id);
    this.#pending.set(record.id, record);
    if (this.#pending.size > this.#options.maxPending) {
      this.stop();
      this.#options.sink.fail(
        new CoordinatorError(
          "RESOURCE_EXHAUSTED",
          `the subscriber has ${this.#options.maxPending} unread updates: subscribe again, and read faster`,
        ),
      );
      return;
    }
    this.#sendNext();
  }

  stop(): void {
    this.#isOver = true;
    this.#pending.clear();
  }

  #sendNext(): void {
    if (this.#isSending || this.#isOver) return;
    const [next] = this.#pending;
    if (next === undefined) return;
    const [id, record] = next;
    this.#pending.delete(id);
    this.#isSending = true;
    const { statuses, withToken, sink } = this.#options;
    const header: Record<string, string> = {};
    if (this.#remaining > 0) {
      this.#remaining -= 1;
      header[SNAPSHOT_HEADER] = "true";
      header[REMAINING_HEADER] = String(this.#remaining);
    }
    sink.send(SubscribeResponse.fromPartial({ status: statuses.statusOf(record, withToken), header }), () => {
      this.#isSending = false;
      this.#sendNext();
    });
  }
}
