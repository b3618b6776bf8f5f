import { randomBytes, X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { mintApiToken } from "@forage/identity/api-token";
import type { TlsMaterial } from "@forage/identity/tls-server";
import type { Authority } from "./authority/authority.ts";
import { encodeJsonRecord } from "./model/codec.ts";
import { apiTokenKey } from "./model/keys.ts";
import type { Store } from "./store/index.ts";
import type { Clock } from "./time/clock.ts";

/**
 * Returns the problem with the validity of the authority's certificate, and what to do; undefined
 * if it is valid.
 */
export function authorityTimeProblem(certPem: string, nowMs: number): string | undefined {
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  const now = new Date(nowMs).toISOString();
  if (nowMs < validFromDate.getTime())
    return `the cluster's CA is valid only from ${validFromDate.toISOString()} on, and the clock says ${now}: clients that verify it can't connect until then. Set the clock if it is behind. If the CA was made while the clock was ahead, wait until then, or start again with an empty data directory and join the nodes again`;
  if (nowMs > validToDate.getTime())
    return `the cluster's CA was valid until ${validToDate.toISOString()}, and the clock says ${now}: set the clock if it is ahead`;
  return undefined;
}

/**
 * Creates a key and a certificate for the gRPC port, with all names by which clients may connect.
 */
export async function serverMaterial(
  authority: Pick<Authority, "issueServer" | "certPem">,
  names: readonly string[],
): Promise<TlsMaterial> {
  const all = [...new Set(["localhost", hostname(), "127.0.0.1", "::1", ...names])].filter(
    (n) => n !== "0.0.0.0" && n !== "::",
  );
  const issued = await authority.issueServer({
    dnsNames: all.filter((name) => isIP(name) === 0),
    ipAddresses: all.filter((name) => isIP(name) !== 0),
  });
  return { chainPem: issued.chainPem, keyPem: issued.keyPem, clientCaPem: authority.certPem };
}

/**
 * Writes a token with all permissions to the file, unless the file exists. The token's record is
 * stored first.
 */
export async function ensureAdminToken(path: string, store: Store, clock: Clock): Promise<void> {
  if (existsSync(path)) return;
  const { token, record } = mintApiToken({
    description: "made at the first start",
    grants: [{ role: "admin", namespaces: "*" }],
    nowMs: clock.nowMs(),
    randomBytes,
  });
  await store.txn([], [{ type: "put", key: apiTokenKey(record.id), value: encodeJsonRecord(record) }]);
  await writeFile(path, token, { mode: 0o600, flag: "wx" });
}
