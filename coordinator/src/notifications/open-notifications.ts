import type { Log } from "@forage/common/log";
import type { Notification, TestNotificationResponse } from "@forage/proto/forage/operator/v1/operator";
import { Counter, type Registry } from "prom-client";
import { CoordinatorError } from "../errors.ts";
import type { EventLog } from "../events/event-log.ts";
import { decodeJsonRecord, encodeJsonRecord } from "../model/codec.ts";
import { notificationKey, PREFIXES } from "../model/keys.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { type Cursor, testMessage } from "./message.ts";
import { Notifier, type NotifierStats } from "./notifier.ts";
import { post } from "./post.ts";
import type { NotificationSettings } from "./settings.ts";
import { readSigningKey } from "./signing-key.ts";

export interface NotificationsOptions {
  readonly settings: readonly NotificationSettings[];
  readonly cluster: string;
  readonly store: Store;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Notifications {
  list(): Notification[];
  /** Posts a message with a test event once. Throws NOT_FOUND. */
  test(name: string, signal: AbortSignal): Promise<TestNotificationResponse>;
  /** Registers the metrics. */
  addMetrics(registers: Registry[]): void;
  /** Ends attempts after a short wait for their answers. Another coordinator repeats them. */
  close(): Promise<void>;
}

/**
 * Starts to send events to the configured receivers. Keys are read for each message, so that they
 * can be replaced at any time.
 */
export async function openNotifications(options: NotificationsOptions): Promise<Notifications> {
  const { settings, store, clock } = options;
  await removeOthers(options);
  const notifiers = settings.map((each) => {
    const readKey = (): Promise<Uint8Array> => readSigningKey(each.secretFile);
    const to = { url: each.url, readKey, clock };
    const key = notificationKey(each.name);
    const notifier = new Notifier({
      ...options,
      settings: each,
      readCursor: async () => {
        const stored = await store.get(key);
        return stored && readableCursor(key, stored.value, options.log);
      },
      writeCursor: async (cursor) => {
        await store.txn([], [{ type: "put", key, value: encodeJsonRecord(cursor) }]);
      },
      post: (message, signal) => post(message, to, signal),
    });
    return { settings: each, to, notifier };
  });
  return {
    list: () => notifiers.map(({ settings: each, notifier }) => notificationView(each, notifier.stats)),
    test: async (name, signal) => {
      const found = notifiers.find(({ settings: each }) => each.name === name);
      if (found === undefined) throw new CoordinatorError("NOT_FOUND", noSuchReceiver(name, settings));
      const message = testMessage(found.settings, { cluster: options.cluster, nowMs: clock.nowMs() });
      const result = await post(message, found.to, signal);
      const reason = result.type === "delivered" ? "" : result.reason;
      return { delivery: message.id, delivered: result.type === "delivered", reason };
    },
    addMetrics: (registers) => {
      new Counter({
        name: "forage_notifications_total",
        help: "Messages with events by receiver and result: delivered, or dropped after the last attempt or a refusal.",
        labelNames: ["notification", "result"],
        registers,
        collect() {
          this.reset();
          for (const { settings: each, notifier } of notifiers) {
            const { delivered, dropped } = notifier.stats;
            this.inc({ notification: each.name, result: "delivered" }, delivered);
            this.inc({ notification: each.name, result: "dropped" }, dropped);
          }
        },
      });
    },
    close: async () => {
      await Promise.all(notifiers.map(({ notifier }) => notifier.close()));
    },
  };
}

/**
 * Removes the stored positions of receivers that are no longer configured, so that such a receiver
 * starts with new events if it returns. If the store accepts no writes, the start continues, and
 * the next start removes them.
 */
async function removeOthers({ store, settings, log }: NotificationsOptions): Promise<void> {
  const known = new Set(settings.map(({ name }) => notificationKey(name)));
  try {
    const { records } = await store.range(PREFIXES.notifications);
    for (const { key } of records) if (!known.has(key)) await store.txn([], [{ type: "delete", key }]);
  } catch (err) {
    log.warn({ event: "notification-places-kept", err });
  }
}

/**
 * Decodes the stored position of a receiver. An unreadable one is logged and ignored, so that the
 * receiver starts with new events.
 */
function readableCursor(key: string, value: Uint8Array, log: Log): Cursor | undefined {
  try {
    const cursor = decodeJsonRecord<Cursor | null>(key, value);
    if (Number.isSafeInteger(cursor?.sequence) && Number.isFinite(cursor?.coveredMs))
      return cursor ?? undefined;
    throw new CoordinatorError("INTERNAL", `${key} holds no place in the events`);
  } catch (err) {
    log.error({ event: "notification-place-unreadable", err, key });
    return undefined;
  }
}

function notificationView(
  { name, url, types, reasons, kinds, namespaces }: NotificationSettings,
  { delivered, dropped, problem }: NotifierStats,
): Notification {
  const { origin } = new URL(url);
  return {
    name,
    origin,
    types,
    reasons,
    kinds,
    namespaces,
    delivered: BigInt(delivered),
    dropped: BigInt(dropped),
    problem,
  };
}

function noSuchReceiver(name: string, settings: readonly NotificationSettings[]): string {
  const names = settings.map((each) => each.name).join(", ");
  return `there is no receiver "${name}"; notifications in coordinator.yaml ${names === "" ? "names none" : `has ${names}`}`;
}
