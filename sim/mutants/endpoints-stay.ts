import { KnownServices as Real } from "../../agent/src/services/known-services.ts";

export * from "../../agent/src/services/known-services.ts";

/** Ignores changes of services after its connection was lost and made again. */
export const KnownServices = {
  async open(...options: Parameters<typeof Real.open>): Promise<Real> {
    const known = await Real.open(...options);
    const restart = known.restart.bind(known);
    const take = known.take.bind(known);
    let connections = 0;
    known.restart = () => {
      connections++;
      restart();
    };
    known.take = (update) => {
      if (update.full || connections < 2) take(update);
    };
    return known;
  },
};
