import type { NodeHealth } from "./entries.ts";

/** The part of a node's health that each heartbeat changes. */
export type NodeContact = Pick<NodeHealth, "usage" | "traffic"> & { readonly lastSeenMs: number };

/**
 * Changes a node's health in place, without a notification. A new object for each heartbeat would become garbage of the old
 * generation after one interval, and only a full collection would free it.
 */
export function recordContact(health: NodeHealth, contact: NodeContact): void {
  const changed: { -readonly [Key in keyof NodeHealth]: NodeHealth[Key] } = health;
  changed.lastSeenMs = contact.lastSeenMs;
  if (contact.usage !== undefined) changed.usage = contact.usage;
  if (contact.traffic !== undefined) changed.traffic = contact.traffic;
}
