import assert from "node:assert/strict";
import { test } from "node:test";
import { allowedClients } from "./allowed-clients.ts";

test("allows pods and the host, but no neighbour", () => {
  const mayAsk = allowedClients(["10.64.0.0/16", "fd00:64::/64"], () => ["192.0.2.1", "2001:db8::1"]);

  for (const asker of [
    "10.64.3.4",
    "10.64.0.1",
    "127.0.0.1",
    "192.0.2.1",
    "fd00:64::5",
    "::1",
    "2001:db8::1",
  ])
    assert.equal(mayAsk(asker), true, asker);
  for (const asker of ["192.0.2.2", "10.65.0.1", "2001:db8::2", "fe80::1%eth0", "", "x"])
    assert.equal(mayAsk(asker), false, asker);
});
