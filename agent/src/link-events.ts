import type { LinkEvents } from "./link/coordinator-link.ts";
import type { AgentLog } from "./supervisor-events.ts";

/** Returns the link's events as log entries. */
export function linkEvents(log: AgentLog): LinkEvents {
  return {
    changed: ({ kind, code, message }) => {
      if (kind === "failed") log.warn({ code, reason: message }, "coordinator-not-connected");
      else log.info({ state: kind }, "coordinator-link");
    },
    renewed: (endsMs) => log.info({ ends: new Date(endsMs).toISOString() }, "certificate-renewed"),
    renewalFailed: ({ code, message }) => log.warn({ code, reason: message }, "certificate-not-renewed"),
  };
}
