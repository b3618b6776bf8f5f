import { type Store, StoreError } from "../../src/store/index.ts";

/** Returns the store as it behaves with a full disk: it can be read, and rejects every write. */
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
