import { StartGate as Real } from "../../coordinator/src/link/start-gate.ts";

export * from "../../coordinator/src/link/start-gate.ts";

/** Holds decisions back although the store is known to be the one of the nodes. */
export class StartGate extends Real {
  constructor(...[state, log]: ConstructorParameters<typeof Real>) {
    super(state, log);
  }
}
