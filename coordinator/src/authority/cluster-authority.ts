import { chmod, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CaOptions, CertificateAuthority } from "@forage/identity/ca";
import {
  loadAuthority,
  loadOrCreateAuthority,
  replaceAuthority,
  storeAuthority,
} from "@forage/identity/ca-file";
import { hasFile } from "@forage/identity/private-file";
import { CoordinatorError } from "../errors.ts";
import type { Authority, AuthorityRoll, AuthorityRoot } from "./authority.ts";

export interface ClusterAuthorityOptions {
  readonly dataDir: string;
  readonly cluster: string;
  readonly ca: CaOptions;
  /** Called when the copy of the roots for clients can't be written. It is written at the next start or change. */
  readonly onProblem: (path: string, error: unknown) => void;
}

/**
 * The cluster's authority in files of the data directory. While it is replaced there are two: `ca.pem` issues the certificates of
 * servers, which every node trusts already, and `next.pem` those of nodes, which learn both roots with their new certificate. Each
 * step changes one file at once, so that a crash leaves the state before the step or after it.
 */
export class ClusterAuthority implements Authority, AuthorityRoll {
  readonly #options: ClusterAuthorityOptions;
  readonly #listeners: (() => Promise<void> | void)[] = [];
  #current: CertificateAuthority;
  /** Trusted from here on. */
  #next: CertificateAuthority | undefined;
  /** Whether the next authority issues certificates of nodes, which servers accept by now. */
  #nextIssues: boolean;

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

  /** Opens the authority, which is made at the first start, and puts a copy of its roots where clients can read it. */
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

  async begin(): Promise<void> {
    if (this.#nextIssues)
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        "the authority is being replaced already: `forage ca ls` shows which nodes still depend on the old one",
      );
    this.#next ??= await this.#makeNext();
    // Servers have to accept its certificates before it issues one.
    await this.#changed();
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
    await replaceAuthority(nextFile(this.#options.dataDir), authorityFile(this.#options.dataDir));
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

  async #makeNext(): Promise<CertificateAuthority> {
    const { dataDir, ca } = this.#options;
    const made = await CertificateAuthority.create(this.cluster, ca);
    await storeAuthority(nextFile(dataDir), made);
    return made;
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

/** The authority's key and certificate. */
export function authorityFile(dataDir: string): string {
  return join(dataDir, "authority", "ca.pem");
}

/** The same of the authority that replaces it. */
function nextFile(dataDir: string): string {
  return join(dataDir, "authority", "next.pem");
}

/** Clients read the file at any time, so that it is replaced as a whole. */
async function publish(path: string, text: string): Promise<void> {
  const present = await readFile(path, "utf8").catch(() => undefined);
  if (present !== text) {
    await writeFile(`${path}.new`, text, { mode: 0o644 });
    await rename(`${path}.new`, path);
  }
  await chmod(path, 0o644);
}
