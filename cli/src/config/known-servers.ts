import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { World } from "../world.ts";
import type { Endpoint } from "./settings.ts";
import { writeConfig } from "./write-config.ts";

interface Entry {
  readonly servers: readonly string[];
  readonly atMs: number;
  /** The digest of the token that was not allowed to list coordinators at that time. */
  readonly deniedTo?: string;
}

/** The coordinators of a cluster, in a cluster with many addresses. */
const SERVERS_MAX = 16;
const CLUSTERS_MAX = 32;
/** Coordinators are seldom added. */
const MAX_AGE_MS = 3_600_000;
const ADDRESS = /^(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9.-]{1,253}):\d{1,5}$/;

/**
 * The file with the addresses that coordinators have reported, by the addresses of the configuration and the authority. An address
 * alone is not trusted: a coordinator there needs a certificate of the authority before it gets the token. A file that can't be
 * read or written is as good as none.
 */
export class KnownServers {
  /** The directory of the user, which is not made. */
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

  /** Returns what was reported, without the given addresses. */
  without(servers: readonly string[]): readonly string[] {
    const known = this.#entries()[this.#key]?.servers ?? [];
    return known.filter((it) => !servers.includes(it)).slice(0, Math.max(0, SERVERS_MAX - servers.length));
  }

  /** Whether the reported coordinators should be requested again. */
  get isOld(): boolean {
    const { atMs, deniedTo = this.#token } = this.#entries()[this.#key] ?? {};
    // Another token may be allowed to.
    if (atMs === undefined || deniedTo !== this.#token) return true;
    return Math.abs(this.#world.nowMs() - atMs) > MAX_AGE_MS;
  }

  save(reported: readonly string[]): void {
    const servers = [...new Set(reported)].filter((it) => ADDRESS.test(it)).slice(0, SERVERS_MAX);
    if (servers.length > 0) this.#put({ servers, atMs: this.#world.nowMs() });
  }

  /** Keeps for as long that the token may not list the coordinators. The known ones stay. */
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
      // The next command asks again.
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

/** Tokens are long and random, so that a digest doesn't help to find one. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
