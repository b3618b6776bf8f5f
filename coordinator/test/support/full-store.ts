import { type Store, StoreError } from "../../src/store/index.ts";

/** The store as it is while its disk is full: it can be read, and every write is rejected. */
export function fullStore(store: Store): Store {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "txn")
        return () => Promise.reject(new StoreError("NO_SPACE", "no space left on the disk"));
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
