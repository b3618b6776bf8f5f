export { type Clock, pause, systemClock } from "@forage/common/clock";
