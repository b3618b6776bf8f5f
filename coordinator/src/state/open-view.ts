import type { Log } from "@forage/common/log";
import type { EventRecorder } from "../model/event.ts";
import type { Store } from "../store/index.ts";
import type { ClusterView } from "./cluster-view.ts";
import { loadClusterView } from "./load-view.ts";
import { openState } from "./open-state.ts";

export interface OpenViewOptions {
  readonly store: Store;
  readonly log: Log;
  /** A view that follows the store already. Default: a new view is loaded. */
  readonly view?: { readonly state: ClusterView } | undefined;
  readonly onFatal: (error: unknown) => void;
}

/**
 * Opens a view that follows the store until the signal aborts. A given view may be behind, so this resolves once the view
 * contains everything that is in the store now: decisions and responses from an older view would contradict acknowledged
 * calls.
 */
export async function openView(
  { store, log, view, onFatal }: OpenViewOptions,
  events: EventRecorder,
  signal: AbortSignal,
): Promise<{ readonly state: ClusterView; readonly following: Promise<void> }> {
  if (view !== undefined) {
    await view.state.reached(store.revision);
    return { state: view.state, following: Promise.resolve() };
  }
  const state = openState(log, events);
  const follow = await loadClusterView(store, state);
  return { state, following: follow(signal).catch(onFatal) };
}
