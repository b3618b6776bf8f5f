import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PeerCertificate } from "node:tls";
import { identityOf, normalSerial } from "./peer-identity.ts";

function aCertificate(
  changes: { cn?: string | string[]; san?: string; serial?: string; from?: string; to?: string } = {},
): PeerCertificate {
  const {
    cn = "node:n1",
    san = "URI:spiffe://home/node/n1",
    serial = "0A1B",
    from = "Jan  1 00:00:00 2030 GMT",
    to = "Jan  2 00:00:00 2030 GMT",
  } = changes;
  return {
    subject: { CN: cn },
    subjectaltname: san,
    serialNumber: serial,
    valid_from: from,
    valid_to: to,
  } as unknown as PeerCertificate;
}

describe("identityOf", () => {
  it("reads a node's identity", () => {
    assert.deepEqual(identityOf(aCertificate()), {
      type: "node",
      nodeId: "n1",
      cluster: "home",
      serial: "a1b",
      notBeforeMs: Date.UTC(2030, 0, 1),
      notAfterMs: Date.UTC(2030, 0, 2),
    });
  });

  it("reads a machine client's identity", () => {
    const identity = identityOf(aCertificate({ cn: "client:ci", san: "URI:spiffe://home/client/ci" }));
    assert.ok(identity?.type === "client");
    assert.equal(identity.name, "ci");
  });

  it("reads a coordinator's identity", () => {
    const identity = identityOf(
      aCertificate({ cn: "coordinator:c1", san: "URI:spiffe://home/coordinator/c1" }),
    );
    assert.ok(identity?.type === "coordinator");
    assert.equal(identity.name, "c1");
  });

  it("returns undefined for any other certificate", () => {
    const others: Parameters<typeof aCertificate>[0][] = [
      { cn: "node:n2" },
      { cn: "client:n1" },
      { cn: "n1" },
      { cn: ["node:n1", "node:n2"] },
      { san: "" },
      { san: "DNS:localhost" },
      { san: "URI:spiffe://home/node/n1, URI:spiffe://home/node/n2" },
      { san: "DNS:x, URI:spiffe://home/node/n1" },
      { san: "URI:spiffe://home/admin/n1" },
      { san: "URI:spiffe://home/node/n1/x" },
      { san: "URI:spiffe:///node/n1" },
      { san: "URI:https://home/node/n1" },
      { cn: "node:N1", san: "URI:spiffe://home/node/N1" },
      { cn: "node:../x", san: "URI:spiffe://home/node/.." },
      { to: "never" },
    ];
    for (const changes of others)
      assert.equal(identityOf(aCertificate(changes)), undefined, JSON.stringify(changes));
    assert.equal(identityOf({} as PeerCertificate), undefined);
  });
});

describe("normalSerial", () => {
  it("converts all forms that tools print to one", () => {
    for (const text of ["0A1B", "a1b", "0a:1b", "00000A1B"]) assert.equal(normalSerial(text), "a1b");
    assert.equal(normalSerial("00"), "0");
  });
});
