import { readFile } from "node:fs/promises";
import { splitCertificates } from "@forage/identity/pem";
import { readPrivateFile } from "@forage/identity/private-file";
import { type Config, ConfigError } from "../config.ts";
import type { Vault } from "../objects/vault.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { AccountRecords } from "./acme/account.ts";
import type { ExternalAccount } from "./acme/client.ts";
import { AcmeIssuer } from "./acme/issuer.ts";
import type { Challenges } from "./acme/order.ts";
import { httpsTransport } from "./acme/transport.ts";
import type { Issuer } from "./issuer.ts";
import { brokenIssuer, selfSignedIssuer } from "./self-signed/issuer.ts";
import { keepAuthority } from "./self-signed/keep-authority.ts";

export interface OpenIssuerOptions {
  readonly settings: Config["certificates"];
  readonly cluster: string;
  readonly store: Store;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
}

export interface OpenedIssuer {
  /** Creates the issuer, which publishes its challenges by the argument. */
  readonly issuer: (challenges: Challenges) => Issuer;
  /**
   * The root certificate that clients must trust explicitly, in PEM. Undefined if clients already
   * trust the authority.
   */
  readonly rootPem: string | undefined;
  close(): void;
}

/**
 * Opens the configured issuer; undefined if none is configured. Throws ConfigError if a file can't
 * be used.
 */
export async function openIssuer(options: OpenIssuerOptions): Promise<OpenedIssuer | undefined> {
  const { settings, cluster, store, vault, clock, randomBytes } = options;
  if (settings.issuer === "self-signed") {
    const make = () => ({ nowMs: clock.nowMs(), randomBytes });
    try {
      const authority = await keepAuthority({ store, vault, cluster, make });
      return { issuer: () => selfSignedIssuer(authority, make), rootPem: authority.certPem, close: () => {} };
    } catch (error) {
      // An unreadable record or a full disk must not prevent the coordinator's start. The reason is
      // shown at each route.
      return { issuer: () => brokenIssuer(error), rootPem: undefined, close: () => {} };
    }
  }
  if (settings.issuer === "off" || settings.acme === undefined) return undefined;
  const { directory, email = "", caFile, externalAccountBinding: binding } = settings.acme;
  const accounts = new AccountRecords({ store, vault, directory });
  const ca = caFile === undefined ? undefined : await readRoots(caFile);
  const externalAccount = binding && (await readExternalAccount(binding));
  const { transport, close } = httpsTransport(ca);
  return {
    issuer: (challenges) =>
      new AcmeIssuer({ directory, email, externalAccount, accounts, challenges, transport, clock }),
    rootPem: undefined,
    close,
  };
}

async function readRoots(path: string): Promise<readonly string[]> {
  const name = "certificates.acme.caFile";
  const text = await readFile(path, "utf8").catch((cause: Error) => {
    throw new ConfigError(`${name}: ${cause.message}`, { cause });
  });
  const roots = splitCertificates(text);
  if (roots.length === 0) throw new ConfigError(`${name}: ${path} holds no certificate in PEM`);
  return roots;
}

async function readExternalAccount(
  binding: NonNullable<NonNullable<Config["certificates"]["acme"]>["externalAccountBinding"]>,
): Promise<ExternalAccount> {
  const { keyId, hmacKeyFile } = binding;
  const name = "certificates.acme.externalAccountBinding.hmacKeyFile";
  const text = await readPrivateFile(hmacKeyFile).catch((cause: Error) => {
    throw new ConfigError(`${name}: ${cause.message}`, { cause });
  });
  const hmacKey = text.trim();
  // The error does not quote the content, because it is a mistyped key.
  if (!/^[A-Za-z0-9_-]{16,1024}={0,2}$/.test(hmacKey))
    throw new ConfigError(`${name}: ${hmacKeyFile} must hold one key in base64url`);
  return { keyId, hmacKey };
}
