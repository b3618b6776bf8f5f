import type { Random } from "@forage/common/random";

/** The behaviour of a container, by the tag of its image: `registry.example/app:KIND-VERSION`. */
export type ProgramKind =
  | "good"
  /** The image takes minutes to pull. */
  | "slow"
  /** Ends soon after each start. */
  | "crashing"
  /** Ends now and then. */
  | "flaky"
  | "unready"
  /** The registry doesn't have the image. */
  | "missing"
  /** Succeeds. */
  | "task"
  /** Fails more often than not. */
  | "poortask"
  /** Always fails. */
  | "badtask";

const KINDS: ReadonlySet<string> = new Set<ProgramKind>([
  "good",
  "slow",
  "crashing",
  "flaky",
  "unready",
  "missing",
  "task",
  "poortask",
  "badtask",
]);

export function imageOf(kind: ProgramKind, version: number): string {
  return `registry.example/app:${kind}-${version}`;
}

export function kindOf(image: string): ProgramKind {
  const kind = image.slice(image.lastIndexOf(":") + 1).split("-")[0] ?? "";
  if (!KINDS.has(kind)) throw new Error(`no program is known for image ${image}`);
  return kind as ProgramKind;
}

/** Returns the time after which the program ends, and its result; `undefined` if it doesn't end by itself. */
export function endOf(
  kind: ProgramKind,
  random: Random,
): { readonly afterMs: number; readonly exitCode: number } | undefined {
  const ranMs = 500 + random.below(20_000);
  switch (kind) {
    case "good":
    case "slow":
    case "unready":
    case "missing":
      return undefined;
    case "crashing":
      return { afterMs: 100 + random.below(2_000), exitCode: 1 };
    case "flaky":
      return random.chance(0.3) ? { afterMs: 5_000 + random.below(60_000), exitCode: 2 } : undefined;
    case "task":
      return { afterMs: ranMs, exitCode: 0 };
    case "poortask":
      return { afterMs: ranMs, exitCode: random.chance(0.6) ? 3 : 0 };
    case "badtask":
      return { afterMs: ranMs, exitCode: 3 };
    default:
      return kind satisfies never;
  }
}

export function pullMs(kind: ProgramKind, random: Random): number {
  return kind === "slow" ? 20_000 + random.below(100_000) : 300 + random.below(4_000);
}
