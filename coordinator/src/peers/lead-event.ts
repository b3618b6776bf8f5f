import type { EventInput } from "../model/event.ts";
import type { OwnPlace } from "./coordinator-table.ts";

/** Returns the event for a coordinator that becomes the leader. */
export function leadEvent(
  { name, addresses: [address = "an unknown address"] }: OwnPlace,
  { hasFollowed }: { readonly hasFollowed: boolean },
): EventInput {
  const since = hasFollowed ? "and has followed another coordinator before" : "since its start";
  return {
    ...{ namespace: "", kind: "coordinator", name, type: "Normal", reason: "LeadTaken" },
    message: `the coordinator at ${address} leads ${since}`,
  };
}
