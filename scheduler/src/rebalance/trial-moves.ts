import type { FleetState } from "../state/fleet-state.ts";
import type { Move, PodKey } from "../types.ts";

interface Step {
  readonly move: Move;
  readonly pod: number;
  readonly standIn: number;
}

/** Moves made in the fleet for the time of a plan, and taken back at its end. */
export class TrialMoves {
  readonly #state: FleetState;
  readonly #steps: Step[] = [];
  #standIns = 0;

  constructor(state: FleetState) {
    this.#state = state;
  }

  get moves(): readonly Move[] {
    return this.#steps.map(({ move }) => move);
  }

  /** The pod must have been lifted. */
  put(pod: number, to: number): void {
    const state = this.#state;
    // No pod of that name can exist: namespaces hold no such character.
    const key: PodKey = `\0rehearsal/${this.#standIns++}`;
    const from = state.nodes.name(state.pods.node[pod] ?? 0);
    const move = { pod: state.pods.key(pod), from, to: state.nodes.name(to) };
    const standIn = state.bind(key, state.pods.classOf(pod), to);
    this.#steps.push({ move, pod, standIn });
  }

  /** Takes the pod off its node for a question; `put` or `drop` follows. */
  lift(pod: number): void {
    this.#state.suppose(pod, false);
  }

  drop(pod: number): void {
    this.#state.suppose(pod, true);
  }

  /** Takes back all moves but the first few. */
  undoTo(length: number): void {
    while (this.#steps.length > length) {
      const step = this.#steps.pop();
      if (step === undefined) return;
      this.#state.unbind(step.standIn);
      this.#state.suppose(step.pod, true);
    }
  }
}
