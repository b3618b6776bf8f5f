import { chmod, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CaOptions, CertificateAuthority } from "@forage/identity/ca";
import {
  loadAuthority,
  loadOrCreateAuthority,
  overwriteAuthority,
  replaceAuthority,
  storeAuthority,
} from "@forage/identity/ca-file";
import { hasFile } from "@forage/identity/private-file";
import { CoordinatorError } from "../errors.ts";
import type { Authority, AuthorityPem, AuthorityRoll, AuthorityRoot, AuthorityState } from "./authority.ts";

export interface ClusterAuthorityOptions {
  readonly dataDir: string;
  readonly cluster: string;
  readonly ca: CaOptions;
  /**
   * Called if the copy of the roots for clients can't be written. It is written at the next start
   * or change.
   */
  readonly onProblem: (path: string, error: unknown) => void;
}

/** The most pins of retired authorities. An authority is replaced every few years. */
const MAX_RETIRED = 16;

/**
 * The cluster's authority in files of the data directory. There are two during a replacement:
 * `ca.pem` issues the certificates of servers, which every node already trusts, and `next.pem`
 * those of nodes, which receive both roots with their new certificate. Each step changes one file
 * atomically, so that a crash leaves the state before or after the step. Coordinators that share a
 * store also share the state, which is written to the store before each step.
 */
export class ClusterAuthority implements Authority, AuthorityRoll {
  readonly #options: ClusterAuthorityOptions;
  readonly #listeners: (() => Promise<void> | void)[] = [];
  #current: CertificateAuthority;
  /** The next authority. It is trusted once this is set. */
  #next: CertificateAuthority | undefined;
  /** Whether the next authority issues certificates of nodes. Servers then already accept them. */
  #nextIssues: boolean;
  /** The pins of retired authorities, newest first. */
  #retired: readonly string[] = [];
  #share: ((state: AuthorityState) => Promise<void>) | undefined;

  private constructor(
    options: ClusterAuthorityOptions,
    current: CertificateAuthority,
    next: CertificateAuthority | undefined,
  ) {
    this.#options = options;
    this.#current = current;
    this.#next = next;
    this.#nextIssues = next !== undefined;
  }

  /**
   * Opens the authority, or creates it at the first start. Writes a copy of its roots for clients.
   */
  static async open(options: ClusterAuthorityOptions): Promise<ClusterAuthority> {
    const { dataDir, cluster, ca } = options;
    const current = await loadOrCreateAuthority(authorityFile(dataDir), cluster, ca);
    const path = nextFile(dataDir);
    const next = (await hasFile(path)) ? await loadAuthority(path, ca) : undefined;
    const opened = new ClusterAuthority(options, current, next);
    await opened.#publish();
    return opened;
  }

  get cluster(): CertificateAuthority["cluster"] {
    return this.#current.cluster;
  }

  get certPem(): string {
    return this.#all()
      .map(({ certPem }) => certPem)
      .join("");
  }

  get pin(): string {
    return this.#current.pin;
  }

  get nextPin(): string | undefined {
    return this.#nextIssues ? this.#next?.pin : undefined;
  }

  issueServer: Authority["issueServer"] = (...args) => this.#current.issueServer(...args);
  issueNode: Authority["issueNode"] = (...args) => this.#issuer().issueNode(...args);
  issueCoordinator: Authority["issueCoordinator"] = (...args) => this.#issuer().issueCoordinator(...args);

  deriveSecrets(purpose: string): readonly Uint8Array[] {
    return this.#all()
      .toReversed()
      .flatMap((authority) => authority.deriveSecrets(purpose));
  }

  roots(): readonly AuthorityRoot[] {
    const issuer = this.#issuer();
    return this.#all().map((authority) => {
      const { pin, certPem } = authority;
      return { pin, certPem, forServers: authority === this.#current, forNodes: authority === issuer };
    });
  }

  onChange(run: () => Promise<void> | void): void {
    this.#listeners.push(run);
  }

  /**
   * Calls the function before each further step of this coordinator. If the promise rejects, the
   * step is not taken.
   */
  shareWith(write: (state: AuthorityState) => Promise<void>): void {
    this.#share = write;
  }

  /**
   * Adopts the state that another coordinator has reached, also in the files. @throws
   * CoordinatorError FAILED_PRECONDITION if the authority in the files is not part of that history.
   */
  async adopt({ current, next, nextIssues, retired }: AuthorityState): Promise<void> {
    const before = this.roots();
    const own = await this.#read(current);
    if (own.pin !== this.pin) await this.#moveOn(own, retired);
    const following = next && (await this.#read(next));
    if (following?.pin !== this.#next?.pin) await this.#putNext(following);
    this.#retired = retired;
    this.#nextIssues = nextIssues && this.#next !== undefined;
    if (JSON.stringify(this.roots()) === JSON.stringify(before)) return;
    await this.#publish();
    await this.#changed();
  }

  async begin(): Promise<void> {
    if (this.#nextIssues)
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        "the authority is being replaced already: `forage ca ls` shows which nodes still depend on the old one",
      );
    const next = await this.#offerNext();
    // Servers must accept its certificates before it issues one.
    await this.#changed();
    await this.#share?.(this.#state({ next: next.toPem(), nextIssues: true }));
    this.#nextIssues = true;
    await this.#publish();
    await this.#changed();
  }

  async finish(): Promise<void> {
    const next = this.#next;
    if (next === undefined || !this.#nextIssues)
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        "the cluster has one authority: `forage ca roll` makes the one that replaces it",
      );
    const retired = [this.pin, ...this.#retired].slice(0, MAX_RETIRED);
    await this.#share?.({ current: next.toPem(), next: undefined, nextIssues: false, retired });
    await replaceAuthority(nextFile(this.#options.dataDir), authorityFile(this.#options.dataDir));
    this.#retired = retired;
    this.#current = next;
    this.#next = undefined;
    this.#nextIssues = false;
    await this.#publish();
    await this.#changed();
  }

  #all(): readonly CertificateAuthority[] {
    return this.#next === undefined ? [this.#current] : [this.#current, this.#next];
  }

  #issuer(): CertificateAuthority {
    return (this.#nextIssues ? this.#next : undefined) ?? this.#current;
  }

  /**
   * Shares the next authority again, because an earlier attempt may not have reached all
   * coordinators.
   */
  async #offerNext(): Promise<CertificateAuthority> {
    const { dataDir, ca } = this.#options;
    const next = this.#next ?? (await CertificateAuthority.create(this.cluster, ca));
    await this.#share?.(this.#state({ next: next.toPem(), nextIssues: false }));
    if (this.#next === undefined) await storeAuthority(nextFile(dataDir), next);
    this.#next = next;
    return next;
  }

  #state(step: Pick<AuthorityState, "next" | "nextIssues">): AuthorityState {
    return { current: this.#current.toPem(), ...step, retired: this.#retired };
  }

  #read(pem: AuthorityPem): Promise<CertificateAuthority> {
    return CertificateAuthority.fromPem(pem, this.#options.ca);
  }

  /** Replaces this authority by its successor. */
  async #moveOn(to: CertificateAuthority, retired: readonly string[]): Promise<void> {
    const { dataDir } = this.#options;
    const file = authorityFile(dataDir);
    if (!retired.includes(this.pin))
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        `${file} is not the cluster's authority: move ${join(dataDir, "authority")} and ${join(dataDir, "keys")} away, and get the keys with the command that \`forage coordinator add\` prints`,
      );
    if (this.#next?.pin === to.pin) await replaceAuthority(nextFile(dataDir), file);
    else await overwriteAuthority(file, to);
    if (this.#next?.pin === to.pin) this.#next = undefined;
    this.#current = to;
  }

  async #putNext(next: CertificateAuthority | undefined): Promise<void> {
    const path = nextFile(this.#options.dataDir);
    if (next === undefined) await rm(path, { force: true });
    else await overwriteAuthority(path, next);
    this.#next = next;
  }

  async #changed(): Promise<void> {
    for (const run of this.#listeners) await run();
  }

  async #publish(): Promise<void> {
    const { dataDir, onProblem } = this.#options;
    const path = join(dataDir, "ca.crt");
    await publish(path, this.certPem).catch((error: unknown) => onProblem(path, error));
  }
}

/** Returns the path of the authority's key and certificate. */
export function authorityFile(dataDir: string): string {
  return join(dataDir, "authority", "ca.pem");
}

/** Returns the path of the next authority's key and certificate. */
function nextFile(dataDir: string): string {
  return join(dataDir, "authority", "next.pem");
}

/** Replaces the file atomically, because clients may read it at any time. */
async function publish(path: string, text: string): Promise<void> {
  const present = await readFile(path, "utf8").catch(() => undefined);
  if (present !== text) {
    await writeFile(`${path}.new`, text, { mode: 0o644 });
    await rename(`${path}.new`, path);
  }
  await chmod(path, 0o644);
}
