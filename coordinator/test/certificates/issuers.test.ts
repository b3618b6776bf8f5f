import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { systemClock } from "@forage/common/clock";
import { startPebble } from "../../../hack/lib/pebble.ts";
import { AccountRecords } from "../../src/certificates/acme/account.ts";
import { AcmeIssuer } from "../../src/certificates/acme/issuer.ts";
import { httpsTransport } from "../../src/certificates/acme/transport.ts";
import { PendingChallenges } from "../../src/certificates/pending-challenges.ts";
import { createAuthority } from "../../src/certificates/self-signed/authority.ts";
import { selfSignedIssuer } from "../../src/certificates/self-signed/issuer.ts";
import { openVault } from "../../src/objects/open-vault.ts";
import { createMemoryStore } from "../../src/store/index.ts";
import { startGatewayStandIn } from "../support/certificate-world.ts";
import { hostnamesOfPem, testIssuer } from "./issuer-contract.ts";

const DECADES_MS = 20 * 366 * 86_400_000;

testIssuer("the development CA", async () => {
  let passedMs = 0;
  const nowMs = () => Date.now() + passedMs;
  const make = () => ({ nowMs: nowMs(), randomBytes });
  const issuer = selfSignedIssuer(await createAuthority("test", make()), make);
  const stop = () => {
    passedMs = DECADES_MS;
  };
  return { issuer, nowMs, hostnamesOf: hostnamesOfPem, stop };
});

testIssuer("an ACME authority", async (t) => {
  const gateway = await startGatewayStandIn(t);
  const pebble = await startPebble({ httpPort: gateway.port });
  t.after(() => pebble.close());
  const store = createMemoryStore({ clock: systemClock });
  t.after(() => store.close());
  const vault = await openVault([{ id: "test", bytes: randomBytes(32) }], store);
  const challenges = new PendingChallenges(systemClock, () =>
    queueMicrotask(() => challenges.served(new Set(challenges.list().map(({ token }) => token)))),
  );
  gateway.source = { challenges: () => challenges.list() };
  const { transport, close } = httpsTransport([readFileSync(pebble.caFile, "utf8")]);
  t.after(close);
  const { directory } = pebble;
  const issuer = new AcmeIssuer({
    ...{ directory, email: "", externalAccount: undefined, challenges, transport, clock: systemClock },
    accounts: new AccountRecords({ store, vault, directory }),
  });
  return { issuer, nowMs: Date.now, hostnamesOf: hostnamesOfPem, stop: () => pebble.stop() };
});
