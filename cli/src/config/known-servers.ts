import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { World } from "../world.ts";
import type { Endpoint } from "./settings.ts";
import { writeConfig } from "./write-config.ts";

interface Entry {
  readonly servers: readonly string[];
  readonly atMs: number;
  /** The digest of the token that was not permitted to list coordinators at that time. */
  readonly deniedTo?: string;
}

/** The most coordinators of a cluster. */
const SERVERS_MAX = 16;
const CLUSTERS_MAX = 32;
/** The time after which the list is requested again; coordinators are seldom added. */
const MAX_AGE_MS = 3_600_000;
const ADDRESS = /^(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9.-]{1,253}):\d{1,5}$/;

/**
 * A file with the addresses that coordinators reported, by the configured addresses and authority.
 * The addresses need not be trusted: a coordinator receives the token only if it has a certificate
 * of the authority. An unreadable or unwritable file is ignored.
 */
export class KnownServers {
  /** The user's directory, which is not created. */
  readonly #base: string;
  readonly #path: string;
  readonly #key: string;
  readonly #token: string;
  readonly #world: Pick<World, "nowMs" | "randomId">;

  constructor(endpoint: Endpoint, world: Pick<World, "env" | "homeDir" | "nowMs" | "randomId">) {
    const { XDG_CACHE_HOME: cache = "" } = world.env;
    this.#base = isAbsolute(cache) ? cache : world.homeDir;
    const directory = isAbsolute(cache) ? cache : join(world.homeDir, ".cache");
    this.#path = join(directory, "forage", "coordinators.json");
    const configured = [endpoint.server, ...endpoint.otherServers].sort().join();
    this.#key = digestOf(`${configured}\n${endpoint.caPem}`);
    this.#token = digestOf(endpoint.token);
    this.#world = world;
  }

  /** Returns the reported addresses except the given ones. */
  without(servers: readonly string[]): readonly string[] {
    const known = this.#entries()[this.#key]?.servers ?? [];
    return known.filter((it) => !servers.includes(it)).slice(0, Math.max(0, SERVERS_MAX - servers.length));
  }

  /** Whether the coordinators should be listed again. */
  get isOld(): boolean {
    const { atMs, deniedTo = this.#token } = this.#entries()[this.#key] ?? {};
    // Another token may be permitted to list them.
    if (atMs === undefined || deniedTo !== this.#token) return true;
    return Math.abs(this.#world.nowMs() - atMs) > MAX_AGE_MS;
  }

  save(reported: readonly string[]): void {
    const servers = [...new Set(reported)].filter((it) => ADDRESS.test(it)).slice(0, SERVERS_MAX);
    if (servers.length > 0) this.#put({ servers, atMs: this.#world.nowMs() });
  }

  /** Records that the token may not list the coordinators. Known addresses stay. */
  deny(): void {
    const servers = this.#entries()[this.#key]?.servers ?? [];
    this.#put({ servers, atMs: this.#world.nowMs(), deniedTo: this.#token });
  }

  #put(entry: Entry): void {
    if (!existsSync(this.#base)) return;
    const { [this.#key]: _, ...others } = this.#entries();
    const kept = Object.entries(others)
      .sort(([, a], [, b]) => b.atMs - a.atMs)
      .slice(0, CLUSTERS_MAX - 1);
    const entries = { [this.#key]: entry, ...Object.fromEntries(kept) };
    try {
      writeConfig(this.#path, `${JSON.stringify(entries)}\n`, this.#world.randomId());
    } catch {
      // The next command lists the coordinators again.
    }
  }

  #entries(): Record<string, Entry> {
    try {
      const parsed: unknown = JSON.parse(readFileSync(this.#path, "utf8"));
      return Object.fromEntries(Object.entries({ ...(parsed as object) }).filter(isEntry));
    } catch {
      return {};
    }
  }
}

function isEntry(entry: [string, unknown]): entry is [string, Entry] {
  const { servers, atMs, deniedTo = "" }: Partial<Record<keyof Entry, unknown>> = { ...(entry[1] as object) };
  const areAddresses =
    Array.isArray(servers) && servers.every((it) => typeof it === "string" && ADDRESS.test(it));
  return areAddresses && typeof atMs === "number" && typeof deniedTo === "string";
}

/** A token is long and random, so it can't be found from its digest. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
