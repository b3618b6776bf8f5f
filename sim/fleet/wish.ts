import type { ForageResource } from "@forage/proto/forest/v1/forage";

/** The state of one workload that operators have in their files. */
export interface Wish {
  readonly name: string;
  readonly words: string;
  /** Edits it; returns what was changed, in words. */
  change(): string;
  /** Makes it something that can work. */
  mend(): void;
  resource(): ForageResource;
}
