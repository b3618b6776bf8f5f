import type { Log } from "@forage/common/log";
import type { LinkEvents } from "./link/coordinator-link.ts";

/** Returns the link's events as log entries. */
export function linkEvents(log: Log): LinkEvents {
  return {
    changed: ({ kind, code, message }) => {
      if (kind === "failed") log.warn({ event: "coordinator-not-connected", code, reason: message });
      else log.info({ event: "coordinator-link", state: kind });
    },
    renewed: (endsMs) => log.info({ event: "certificate-renewed", ends: new Date(endsMs).toISOString() }),
    renewalFailed: ({ code, message }) =>
      log.warn({ event: "certificate-not-renewed", code, reason: message }),
  };
}
