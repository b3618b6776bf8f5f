import { createHash } from "node:crypto";
import type { ServicePortRules } from "./port-rules.ts";
import { deltaText, fullText, type RulesById, type RulesOptions } from "./rules-text.ts";

/** Marks have 128 bits. */
const MODULUS = 1n << 128n;
const HEX_DIGITS = 32;

/**
 * Names a table's content by a hash of its text that is independent of the order of rules. An empty chain has this
 * name, by which an agent detects at its start whether the kernel already has the required table.
 */
export class RulesMark {
  /** Cached, because most rules don't change. */
  readonly #digests = new WeakMap<ServicePortRules, bigint>();

  /** Returns the chain's name. */
  of(options: RulesOptions, rules: RulesById): string {
    // The table's own name is not part of the mark.
    const base = { ...options, table: "t" };
    let sum = digestOf(fullText(base, new Map()));
    for (const rule of rules.values()) {
      const digest =
        this.#digests.get(rule) ?? digestOf(deltaText(base, new Map(), new Map([[rule.id, rule]])));
      this.#digests.set(rule, digest);
      sum = (sum + digest) % MODULUS;
    }
    return `made_${sum.toString(16).padStart(HEX_DIGITS, "0")}`;
  }
}

function digestOf(text: string): bigint {
  return BigInt(`0x${createHash("sha256").update(text).digest("hex").slice(0, HEX_DIGITS)}`);
}
