import type { Log } from "@forage/common/log";
import type { EventRecorder } from "../model/event.ts";
import { ClusterView } from "./cluster-view.ts";
import { unreadableRecord } from "./unreadable.ts";

/**
 * Returns an empty view whose listeners don't affect each other. Listeners handle errors of single objects themselves;
 * other errors are logged, and the changes still reach the other listeners.
 */
export function openState(log: Log, events: EventRecorder): ClusterView {
  return new ClusterView({
    onListenerError: (err) => log.error({ event: "view-listener-failed", err }),
    onUnreadable: (key, err) => {
      log.error({ event: "record-unreadable", key, err });
      events.record(unreadableRecord(key, err));
    },
  });
}
