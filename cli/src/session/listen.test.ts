import assert from "node:assert/strict";
import { test } from "node:test";
import { listen } from "./listen.ts";

const on = { connection: () => {}, refused: () => {} };

test("reports a port that is in use, and how to choose another one", async (t) => {
  const taken = await listen({ address: "127.0.0.1", port: 0 }, on);
  t.after(() => taken.close());
  await assert.rejects(listen({ address: "127.0.0.1", port: taken.port }, on), {
    message: `port ${taken.port} is taken on 127.0.0.1: give another before the colon, or none for any that is free (:REMOTE)`,
  });
});

test("an address that is not of this machine is named with the system's reason", async () => {
  await assert.rejects(listen({ address: "192.0.2.1", port: 0 }, on), {
    message: /^can't listen on 192\.0\.2\.1 port 0: .*EADDRNOTAVAIL/,
  });
});
