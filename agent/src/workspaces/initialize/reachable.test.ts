import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { METADATA_ADDRESSES } from "../../network/access-rules.ts";
import { reachableAddress, refuseHostAddresses } from "./reachable.ts";

const refuse = refuseHostAddresses();

test("refuses the metadata services of all clouds, whatever networks they are in", () => {
  for (const address of [...METADATA_ADDRESSES[4], ...METADATA_ADDRESSES[6]])
    assert.equal(refuse(address), "is a cloud's metadata service", address);
});

test("refuses the host's own addresses, and those that no other server can have", () => {
  const own = Object.values(networkInterfaces()).flatMap((it) => it ?? []);
  const reasons: Readonly<Record<string, readonly string[]>> = {
    "belongs to this host": ["0.0.0.0", "127.8.0.1", "::", "::1", ...own.map(({ address }) => address)],
    "is link-local": ["169.254.3.4", "fe80::1"],
    "is not the address of a server": ["224.0.0.1", "255.255.255.255", "ff02::1"],
  };
  const isLinkLocal = (address: string) => /^(?:fe[89ab]|169\.254\.)/.test(address);
  for (const [reason, addresses] of Object.entries(reasons))
    for (const address of addresses)
      assert.equal(refuse(address), isLinkLocal(address) ? "is link-local" : reason, address);
});

test("returns an address that is allowed, and the reason if there is none", async () => {
  assert.equal(await reachableAddress("192.0.2.7", refuse), "192.0.2.7");
  assert.equal(await reachableAddress("[2001:db8::7]", refuse), "2001:db8::7");
  await assert.rejects(reachableAddress("[::1]", refuse), { message: /::1 belongs to this host$/ });
});
