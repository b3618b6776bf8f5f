import type { Logger } from "pino";
import type { EventRecorder } from "../model/event.ts";
import { ClusterView } from "./cluster-view.ts";
import { unreadableRecord } from "./unreadable.ts";

/** Subscribers handle errors object by object. An error that one of them throws must not keep the view from the others. */
export function openState(log: Logger, events: EventRecorder): ClusterView {
  return new ClusterView({
    onListenerError: (err) => log.error({ event: "view-listener-failed", err }, "view-listener-failed"),
    onUnreadable: (key, err) => {
      log.error({ event: "record-unreadable", key, err }, "record-unreadable");
      events.record(unreadableRecord(key, err));
    },
  });
}
