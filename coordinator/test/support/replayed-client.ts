import assert from "node:assert/strict";
import type { Update, WeightedAddr } from "@forage/proto/destination";
import type { TcpAddress } from "@forage/proto/net";

/** Applies updates like a proxy. Fails on updates that a proxy would misinterpret. */
export class ReplayedClient {
  readonly #addresses = new Map<string, WeightedAddr>();
  exists: boolean | undefined;

  /** Applies an update. `expected` are the addresses that must not be removed, if known. */
  apply({ update }: Update, expected: readonly string[] = []): void {
    const first = this.exists === undefined;
    switch (update?.$case) {
      case "add":
        this.exists = true;
        assert.ok(update.value.addrs.length > 0, "an empty Add is dropped by proxies");
        for (const address of update.value.addrs) this.#addresses.set(textOf(address.addr), address);
        return;
      case "remove":
        assert.ok(!first, "a leading Remove is ignored by proxies");
        for (const addr of update.value.addrs) {
          assert.ok(this.#addresses.delete(textOf(addr)), "only what is known is removed");
          assert.ok(!expected.includes(textOf(addr)), "an expected address is never removed");
        }
        return;
      case "noEndpoints":
        this.exists = update.value.exists;
        this.#addresses.clear();
        return;
      default:
        assert.fail("an empty update");
    }
  }

  /** Returns all known addresses with their weights. */
  everything(): ReadonlyMap<string, WeightedAddr> {
    return new Map([...this.#addresses].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Returns each address as `address:port pod@node`. */
  known(): string[] {
    const described = [...this.#addresses].map(
      ([address, { metricLabels }]) => `${address} ${metricLabels.pod}@${metricLabels.node}`,
    );
    return described.sort();
  }
}

export function textOf(address: TcpAddress | undefined): string {
  const ip = address?.ip?.ip;
  assert.ok(ip?.$case === "ipv4");
  return `${[24, 16, 8, 0].map((shift) => (ip.value >>> shift) & 0xff).join(".")}:${address?.port}`;
}
