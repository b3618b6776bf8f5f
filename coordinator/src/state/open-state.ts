import type { Logger } from "pino";
import type { EventRecorder } from "../model/event.ts";
import { ClusterView } from "./cluster-view.ts";
import { unreadableRecord } from "./unreadable.ts";

/** What follows the view handles errors object by object; one that escapes must not keep the view from the others. */
export function openState(log: Logger, events: EventRecorder): ClusterView {
  return new ClusterView({
    onListenerError: (err) => log.error({ event: "view-listener-failed", err }, "view-listener-failed"),
    onUnreadable: (key, err) => {
      log.error({ event: "record-unreadable", key, err }, "record-unreadable");
      events.record(unreadableRecord(key, err));
    },
  });
}
