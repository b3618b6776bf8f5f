import type { PodClass } from "../pod/pod-class.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { Profile } from "../types.ts";
import { kubeLocals, kubeTotals } from "./kube-score.ts";
import type { LiveRules } from "./live-rules.ts";
import { packBest } from "./pack-best.ts";
import { packLocals, packTotals } from "./pack-score.ts";
import type { Shortlist } from "./shortlist.ts";

/** The scoring of feasible nodes: a part that depends on the node's own state, and the rest. */
export interface Scoring {
  readonly profile: Profile;
  /** Computes `list.local` for the listed nodes. */
  readonly locals: (state: FleetState, live: LiveRules, list: Shortlist) => void;
  /** Computes `list.totals` from `list.local` and the fleet's counters. */
  readonly totals: (live: LiveRules, list: Shortlist) => void;
  /** Finds the best node without listing and scoring all of them. Absent if the profile has no such shortcut. */
  readonly best?: (state: FleetState, live: LiveRules) => number;
  /** Reports whether the pod can be scored at all. */
  readonly accepts: (podClass: PodClass) => boolean;
}

export function scoringOf(profile: Profile): Scoring {
  switch (profile) {
    case "pack":
      return { profile, locals: packLocals, totals: packTotals, best: packBest, accepts: () => true };
    case "kube-most":
    case "kube-least":
      return {
        profile,
        locals: (state, live, list) => kubeLocals(state, live.podClass, list, profile === "kube-most"),
        totals: kubeTotals,
        accepts: (podClass) => !podClass.rules.preferenceBroken,
      };
  }
}
