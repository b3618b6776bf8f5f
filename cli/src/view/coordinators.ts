import type { Coordinator } from "@forage/proto/forage/operator/v1/operator";
import type { Style } from "../output/paint.ts";
import type { Column } from "../output/table.ts";
import { age } from "./timestamp.ts";

export function coordinatorColumns(nowMs: number): Column<Coordinator>[] {
  return [
    { title: "COORDINATOR", value: ({ name }) => name },
    { title: "ADDRESS", value: ({ addresses }) => addresses[0] ?? "" },
    { title: "ROLE", value: ({ leads }) => (leads ? "Leader" : "Follower") },
    { title: "STATUS", value: ({ ready }) => (ready ? "Ready" : "NotReady"), style: statusStyle },
    { title: "LEADS FOR", value: ({ leadsSince }) => age(leadsSince, nowMs), alignRight: true },
    { title: "BEHIND", value: behindText, alignRight: true },
    { title: "SEEN", value: ({ lastSeenAt }) => age(lastSeenAt, nowMs), alignRight: true },
    { title: "ADDRESSES", value: ({ addresses }) => addresses.join(","), wide: true },
    { title: "WHY", value: ({ message }) => message, whenFilled: true },
  ];
}

/** Returns the number of revisions of the store that a follower had not read at its last report. */
function behindText({ leads, revisionsBehind }: Coordinator): string {
  return leads ? "" : String(revisionsBehind);
}

function statusStyle({ ready }: Coordinator): Style {
  return ready ? "good" : "bad";
}
