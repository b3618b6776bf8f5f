export { type Random, randomOf } from "@forage/common/random";
