import type { FleetState } from "../state/fleet-state.ts";
import type { Move, PodKey } from "../types.ts";

interface Step {
  readonly move: Move;
  readonly pod: number;
  readonly standIn: number;
}

/** Moves that are applied to the fleet during planning, and undone at the end. */
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

  /** Binds the pod, which must have been lifted, to a node. */
  put(pod: number, to: number): void {
    const state = this.#state;
    // No real pod has this name, because namespaces can't contain this character.
    const key: PodKey = `\0rehearsal/${this.#standIns++}`;
    const from = state.nodes.name(state.pods.node[pod] ?? 0);
    const move = { pod: state.pods.key(pod), from, to: state.nodes.name(to) };
    const standIn = state.bind(key, state.pods.classOf(pod), to);
    this.#steps.push({ move, pod, standIn });
  }

  /** Removes the pod from its node for an evaluation. `put` or `drop` must follow. */
  lift(pod: number): void {
    this.#state.setPresent(pod, false);
  }

  drop(pod: number): void {
    this.#state.setPresent(pod, true);
  }

  /** Undoes all moves but the first `length`. */
  undoTo(length: number): void {
    while (this.#steps.length > length) {
      const step = this.#steps.pop();
      if (step === undefined) return;
      this.#state.unbind(step.standIn);
      this.#state.setPresent(step.pod, true);
    }
  }
}
