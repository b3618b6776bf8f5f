import type { ForageResource } from "@forage/proto/forest/v1/forage";

/** The desired state of one workload in operators' files. */
export interface Wish {
  readonly name: string;
  readonly words: string;
  /** Changes the desired state, and returns a description of the change. */
  change(): string;
  /** Makes the desired state one that can work. */
  mend(): void;
  resource(): ForageResource;
}
