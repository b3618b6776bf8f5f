import { createHash } from "node:crypto";
import type { ServicePortRules } from "./port-rules.ts";
import { deltaText, fullText, type RulesById, type RulesOptions } from "./rules-text.ts";

/** Marks have 128 bits. */
const MODULUS = 1n << 128n;
const HEX_DIGITS = 32;

/**
 * Names a table's content by all text that makes it, in whatever order it was made. A chain without rules has the name of it,
 * so that an agent that starts sees whether the kernel has just what it would make.
 */
export class RulesMark {
  /** Most rules stay what they are from change to change. */
  readonly #digests = new WeakMap<ServicePortRules, bigint>();

  /** The chain's name. */
  of(options: RulesOptions, rules: RulesById): string {
    // Not of the table's own name.
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
