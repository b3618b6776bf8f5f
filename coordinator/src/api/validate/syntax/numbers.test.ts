import { describeRule } from "../../../../test/support/rules.ts";
import {
  countProblem,
  idProblem,
  modeProblem,
  optionalPortProblem,
  portProblem,
  secondsProblem,
  waitSecondsProblem,
} from "./numbers.ts";

describeRule("portProblem", portProblem, { valid: [1, 65_535], invalid: [0, 65_536, 4_294_967_295] });
describeRule("optionalPortProblem", optionalPortProblem, { valid: [0, 1, 65_535], invalid: [65_536] });
describeRule("countProblem", countProblem, { valid: [0, 2_147_483_647], invalid: [2_147_483_648] });
describeRule("waitSecondsProblem", waitSecondsProblem, { valid: [0, 604_800], invalid: [604_801] });
describeRule("secondsProblem", secondsProblem, {
  valid: [0n, 2_147_483_647n],
  invalid: [-1n, 2_147_483_648n],
});
describeRule("idProblem", idProblem, { valid: [0n, 2_147_483_647n], invalid: [-1n, 2_147_483_648n] });
describeRule("modeProblem", modeProblem, { valid: [0, 0o400, 0o777], invalid: [0o1000, 644 * 10] });
