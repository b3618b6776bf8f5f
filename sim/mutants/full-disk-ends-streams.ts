import { messageOf } from "@forage/common/message-of";
import { connect as real } from "../../coordinator/src/link/connect.ts";
import type { Store } from "../../coordinator/src/store/index.ts";

export * from "../../coordinator/src/link/connect.ts";

/** Ends an agent's stream when a report of the agent can't be stored. */
export const connect: typeof real = (requests, context, options) =>
  real(requests, context, { ...options, store: withOtherErrors(options.store) });

/** Returns a store whose failed writes have the errors of a defect. */
function withOtherErrors(store: Store): Store {
  const txn: Store["txn"] = (compares, ops) =>
    store.txn(compares, ops).catch((cause: unknown) => {
      throw new Error(messageOf(cause), { cause });
    });
  return new Proxy(store, {
    get: (target, name: keyof Store) => {
      const found = name === "txn" ? txn : target[name];
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
}
