import { messageOf } from "@forage/common/message-of";
import type { Clock } from "../../time/clock.ts";
import { checkedCertificate } from "../check-certificate.ts";
import { reasonNotIssuable } from "../hostname.ts";
import { IssueError } from "../issue-error.ts";
import type { Issuer, NewCertificate } from "../issuer.ts";
import type { AccountRecords } from "./account.ts";
import { type AcmeClient, createClient, type ExternalAccount } from "./client.ts";
import { type Challenges, runOrder } from "./order.ts";
import { AcmeProblem } from "./problem.ts";
import type { AcmeTransport } from "./transport.ts";

export interface AcmeIssuerOptions {
  readonly directory: string;
  /** The contact address; empty if none is configured. */
  readonly email: string;
  readonly externalAccount: ExternalAccount | undefined;
  readonly accounts: AccountRecords;
  readonly challenges: Challenges;
  readonly transport: AcmeTransport;
  readonly clock: Clock;
}

/** The most concurrent orders. Authorities limit new orders, so more would only wait. */
const AT_ONCE = 4;

/** Obtains certificates from an ACME authority, and validates hostnames by HTTP-01. */
export class AcmeIssuer implements Issuer {
  readonly id: string;
  readonly name: string;
  readonly atOnce = AT_ONCE;
  readonly #options: AcmeIssuerOptions;
  /**
   * The last registration. Registrations run one at a time, because concurrent ones would create
   * two accounts.
   */
  #registering: Promise<void> = Promise.resolve();

  constructor(options: AcmeIssuerOptions) {
    this.#options = options;
    this.id = options.directory;
    this.name = options.directory;
  }

  refusalOf(hostname: string): string | undefined {
    if (!hostname.startsWith("*.")) return reasonNotIssuable(hostname);
    return `${this.name} proves hostnames by HTTP-01, which can't be done for wildcards such as ${hostname}: name a secret in tls.certificate_ref, or each hostname by itself`;
  }

  async issue(hostname: string, signal: AbortSignal): Promise<NewCertificate> {
    try {
      return await this.#order(hostname, signal).catch(async (error: unknown) => {
        if (!isAccountLost(error)) throw error;
        await this.#forgetAccount();
        return this.#order(hostname, signal);
      });
    } catch (error) {
      throw asIssueError(error, signal);
    }
  }

  async #order(hostname: string, signal: AbortSignal): Promise<NewCertificate> {
    const { clock, challenges } = this.#options;
    const acme = await this.#client(signal);
    const answer = await runOrder(hostname, { acme, challenges, clock, signal });
    return checkedCertificate(hostname, answer, clock.nowMs());
  }

  async #client(signal: AbortSignal): Promise<AcmeClient> {
    const registered = this.#registering.then(() => this.#register(signal));
    this.#registering = registered.then(
      () => {},
      () => {},
    );
    return registered;
  }

  /** Returns a client for the registered account, whose contact matches the configuration. */
  async #register(signal: AbortSignal): Promise<AcmeClient> {
    const { directory, email, externalAccount, accounts, transport, clock } = this.#options;
    const account = await accounts.load();
    const acme = await createClient({
      directory,
      accountKeyPem: account.keyPem,
      accountUrl: account.url,
      externalAccount,
      transport,
      nowMs: clock.nowMs,
      signal,
    });
    const contacts = email === "" ? [] : [`mailto:${email}`];
    if (account.url !== "" && sameTexts(account.contacts, contacts)) return acme;
    try {
      if (account.url === "")
        await acme.client.createAccount({ termsOfServiceAgreed: true, contact: contacts });
      else await acme.client.updateAccount({ contact: contacts });
    } catch (error) {
      throw registrationFailed(error, signal);
    }
    await accounts.save({ ...account, url: acme.client.getAccountUrl(), contacts });
    return acme;
  }

  /**
   * Removes the URL of an account that the authority has lost. The same key is then registered
   * again.
   */
  async #forgetAccount(): Promise<void> {
    const { accounts } = this.#options;
    await accounts.save({ ...(await accounts.load()), url: "" });
  }
}

/** Converts an error of the registration. It never counts against a hostname. */
function registrationFailed(cause: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || !(cause instanceof AcmeProblem)) return cause;
  // A lost account is handled by the caller.
  if (isAccountLost(cause)) return cause;
  const { message, retryAfterMs } = cause;
  const blame = cause.blame === "rate" ? "rate" : "issuer";
  return new IssueError(`no account with the authority: ${message}`, { blame, retryAfterMs, cause });
}

function isAccountLost(error: unknown): boolean {
  return error instanceof AcmeProblem && error.type === "accountDoesNotExist";
}

/** Converts errors of the library, which reports answers that violate ACME by its own errors. */
function asIssueError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || error instanceof IssueError) return error;
  const message = messageOf(error);
  return new IssueError(`the authority's answer is unusable: ${message}`, { blame: "issuer", cause: error });
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}
