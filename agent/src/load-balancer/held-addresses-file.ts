import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { makePrivateDirectory, writeFilesDurably } from "../journal/durable-files.ts";
import type { HeldAddress } from "./plan-addresses.ts";

const FILE = "held-addresses.json";

export interface HeldRecords {
  readonly held: readonly HeldAddress[];
  has(held: HeldAddress): boolean;
  add(held: readonly HeldAddress[]): Promise<void>;
  remove(held: HeldAddress): Promise<void>;
}

/** Which of the host's addresses are ours: written down before the host gets one, so that none is ever left behind. */
export class HeldAddressesFile implements HeldRecords {
  readonly #dir: string;
  #held: readonly HeldAddress[];

  private constructor(dir: string, held: readonly HeldAddress[]) {
    this.#dir = dir;
    this.#held = held;
  }

  /** Opens the file. Unreadable records count as absent. The kernel drops their addresses at the end of the lease. */
  static async open(dir: string): Promise<HeldAddressesFile> {
    await makePrivateDirectory(dir);
    const text = await readFile(join(dir, FILE), "utf8").catch(() => "[]");
    return new HeldAddressesFile(dir, parse(text));
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
    await writeFilesDurably(this.#dir, [{ name: FILE, bytes: Buffer.from(JSON.stringify(held)) }]);
    this.#held = held;
  }
}

function parse(text: string): HeldAddress[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value)
      ? value.filter(isHeld).map((it) => ({ ip: it.ip, interface: it.interface }))
      : [];
  } catch {
    return [];
  }
}

function isHeld(value: unknown): value is HeldAddress {
  if (typeof value !== "object" || value === null || !("ip" in value) || !("interface" in value))
    return false;
  return typeof value.ip === "string" && isIP(value.ip) !== 0 && typeof value.interface === "string";
}

function same(a: HeldAddress, b: HeldAddress): boolean {
  return a.ip === b.ip && a.interface === b.interface;
}
