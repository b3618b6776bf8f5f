import type { Log } from "@forage/common/log";
import type { EventRecorder } from "../model/event.ts";
import { ClusterView } from "./cluster-view.ts";
import { unreadableRecord } from "./unreadable.ts";

/** Subscribers handle errors object by object. An error that one of them throws must not keep the view from the others. */
export function openState(log: Log, events: EventRecorder): ClusterView {
  return new ClusterView({
    onListenerError: (err) => log.error({ event: "view-listener-failed", err }),
    onUnreadable: (key, err) => {
      log.error({ event: "record-unreadable", key, err });
      events.record(unreadableRecord(key, err));
    },
  });
}
