export { Fleet, type FleetOptions, type Ranking } from "./fleet.ts";
export { tolerates } from "./match/taints.ts";
export type { FitChance, InfeasibleClass } from "./place/infeasible-class.ts";
export { podKey } from "./pod/pod-key.ts";
export { type Amounts, podRequests } from "./pod/pod-requests.ts";
export { formatAmount, formatBytes, formatMilliCpu, formatQuantity } from "./quantity/format-quantity.ts";
export {
  amountOf as parseAmount,
  milliCpuOf,
  NANO_PER_UNIT,
  parseQuantity,
  wholeUnitsOf,
} from "./quantity/parse-quantity.ts";
export { SchedulerError, type SchedulerErrorCode } from "./scheduler-error.ts";
export type * from "./types.ts";
