import { StartGate as Real } from "../../coordinator/src/link/start-gate.ts";

export * from "../../coordinator/src/link/start-gate.ts";

/** Delays decisions although the store is known to belong to the nodes. */
export class StartGate extends Real {
  constructor(...[state, log]: ConstructorParameters<typeof Real>) {
    super(state, log);
  }
}
