import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { NoteDamage } from "../damage-reports.ts";
import { makePrivateDirectory, writeFilesDurably } from "../journal/durable-files.ts";
import type { HeldAddress } from "./plan-addresses.ts";

const FILE = "held-addresses.json";

export interface HeldRecords {
  readonly held: readonly HeldAddress[];
  has(held: HeldAddress): boolean;
  add(held: readonly HeldAddress[]): Promise<void>;
  remove(held: HeldAddress): Promise<void>;
}

/**
 * Stores which of the host's addresses the agent has added. It is written before the host gets an address, so the agent can
 * always remove it.
 */
export class HeldAddressesFile implements HeldRecords {
  readonly #dir: string;
  #held: readonly HeldAddress[];

  private constructor(dir: string, held: readonly HeldAddress[]) {
    this.#dir = dir;
    this.#held = held;
  }

  /** Opens the file. Unreadable records count as absent. The kernel drops their addresses at the end of the lease. */
  static async open(dir: string, noteDamage?: NoteDamage): Promise<HeldAddressesFile> {
    const path = join(dir, FILE);
    const text = await readFile(path, "utf8").catch(() => "[]");
    const held = parse(text);
    if (held === undefined) noteDamage?.(path, "it can't be parsed", "its addresses end with their leases");
    return new HeldAddressesFile(dir, held ?? []);
  }

  get held(): readonly HeldAddress[] {
    return this.#held;
  }

  has(held: HeldAddress): boolean {
    return this.#held.some((it) => same(it, held));
  }

  async add(held: readonly HeldAddress[]): Promise<void> {
    const added = held.filter((it) => !this.has(it));
    if (added.length > 0) await this.#write([...this.#held, ...added]);
  }

  async remove(held: HeldAddress): Promise<void> {
    await this.#write(this.#held.filter((it) => !same(it, held)));
  }

  async #write(held: readonly HeldAddress[]): Promise<void> {
    // The agent removes these addresses from the host, so a flipped digit must not name one of the host's own.
    const records = held.map((it) => ({ ...it, checksum: checksumOf(it) }));
    await makePrivateDirectory(this.#dir);
    await writeFilesDurably(this.#dir, [{ name: FILE, bytes: Buffer.from(JSON.stringify(records)) }]);
    this.#held = held;
  }
}

/** Undefined: damaged. Older agents wrote no checksums. */
function parse(text: string): HeldAddress[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value) || !value.every(isHeld)) return undefined;
    return value.map((it) => ({ ip: it.ip, interface: it.interface }));
  } catch {
    return undefined;
  }
}

function isHeld(value: unknown): value is HeldAddress {
  if (typeof value !== "object" || value === null || !("ip" in value) || !("interface" in value))
    return false;
  const { ip, interface: name } = value;
  if (typeof ip !== "string" || isIP(ip) === 0 || typeof name !== "string") return false;
  return !("checksum" in value) || value.checksum === checksumOf({ ip, interface: name });
}

function checksumOf({ ip, interface: name }: HeldAddress): string {
  return crc32(`${ip} ${name}`).toString(16).padStart(8, "0");
}

function same(a: HeldAddress, b: HeldAddress): boolean {
  return a.ip === b.ip && a.interface === b.interface;
}
