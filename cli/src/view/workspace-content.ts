import {
  type NodeContent,
  NodeContentState,
  type StoredArchive,
} from "@forage/proto/forage/workspaces/v1/content";
import { TransferKind } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { Column } from "../output/table.ts";
import { age } from "./timestamp.ts";

const STATES: Readonly<Record<number, string>> = {
  [NodeContentState.IN_USE]: "InUse",
  [NodeContentState.SAVING]: "Saving",
  [NodeContentState.KEPT]: "Kept",
  [NodeContentState.DELETING]: "Deleting",
};
const MEBIBYTE = 1024 ** 2;

/** Returns the columns of content on nodes. */
export function contentColumns(): Column<NodeContent>[] {
  return [
    { title: "INSTANCE", value: ({ instanceId }) => instanceId },
    { title: "WORKSPACE", value: ({ metaId }) => metaId },
    { title: "OWNER", value: ({ owner }) => owner },
    { title: "NODE", value: ({ node }) => node },
    { title: "STATE", value: ({ state }) => STATES[state] ?? "Unknown" },
    { title: "DISK", value: ({ usedBytes }) => sizeText(usedBytes), alignRight: true },
    { title: "MESSAGE", value: ({ message }) => message, whenFilled: true },
  ];
}

/** Returns the columns of archives in the content store. */
export function archiveColumns(nowMs: number): Column<StoredArchive>[] {
  return [
    { title: "WORKSPACE", value: ({ metaId }) => metaId },
    { title: "OWNER", value: ({ owner }) => owner },
    { title: "KIND", value: ({ kind, generation }) => kindText(kind, generation) },
    { title: "SIZE", value: ({ sizeBytes }) => sizeText(sizeBytes), alignRight: true },
    { title: "AGE", value: ({ at }) => age(at, nowMs), alignRight: true },
    { title: "URL", value: ({ url }) => url },
  ];
}

function kindText(kind: TransferKind, generation: number): string {
  return kind === TransferKind.SNAPSHOT ? "Snapshot" : `Backup ${generation}`;
}

function sizeText(bytes: bigint): string {
  return bytes === 0n ? "-" : `${Math.ceil(Number(bytes) / MEBIBYTE)}Mi`;
}
