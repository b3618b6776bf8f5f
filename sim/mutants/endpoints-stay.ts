import { KnownServices as Real } from "../../agent/src/services/known-services.ts";

export * from "../../agent/src/services/known-services.ts";

/** Ignores changes of services after it has reconnected. */
export const KnownServices = {
  async open(...options: Parameters<typeof Real.open>): Promise<Real> {
    const known = await Real.open(...options);
    const restart = known.restart.bind(known);
    const apply = known.apply.bind(known);
    let connections = 0;
    known.restart = () => {
      connections++;
      restart();
    };
    known.apply = (update) => {
      if (update.full || connections < 2) apply(update);
    };
    return known;
  },
};
