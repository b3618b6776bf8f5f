import { nextStep as real } from "../../agent/src/pods/decide/next-step.ts";

export * from "../../agent/src/pods/decide/next-step.ts";

/** Never retries a step that has failed once. */
export const nextStep: typeof real = (view, limits) => {
  const faults = new Map(
    [...view.faults].map(([key, fault]) => [key, { ...fault, notBeforeMs: Number.MAX_SAFE_INTEGER }]),
  );
  return real({ ...view, faults }, limits);
};
