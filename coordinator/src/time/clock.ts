export { type Clock, systemClock } from "@forage/common/clock";
