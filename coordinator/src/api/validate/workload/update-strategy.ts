import type { UpdateStrategy } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { countProblem } from "../syntax/numbers.ts";
import { choiceProblem } from "../syntax/text.ts";

export function validateUpdateStrategy({ type, rollingUpdate }: UpdateStrategy, field: Field): void {
  field.at("type").check(choiceProblem(type, ["RollingUpdate", "Recreate"]));
  if (rollingUpdate === undefined) return;
  const rolling = field.at("rolling_update");
  if (type === "Recreate") rolling.invalid("must not be set when the type is Recreate");
  const { maxUnavailable, maxSurge } = rollingUpdate;
  rolling.at("max_unavailable").check(shareProblem(maxUnavailable, 100));
  rolling.at("max_surge").check(shareProblem(maxSurge, Number.POSITIVE_INFINITY));
  if (isZero(maxUnavailable) && isZero(maxSurge))
    rolling
      .at("max_unavailable")
      .invalid("must not be 0 when max_surge is 0, because no pod could be replaced");
}

/** Validates a number of pods or a percentage of the replicas. Empty stands for 25%. */
function shareProblem(text: string, maxPercent: number): string | undefined {
  const [, digits, percent] = /^(\d{1,10})(%?)$/.exec(text) ?? [];
  if (text === "") return undefined;
  if (digits === undefined) return 'must be a number such as "1" or a percentage such as "25%"';
  if (percent === "%" && Number(digits) > maxPercent) return `must be at most ${maxPercent}%`;
  return countProblem(Number(digits));
}

function isZero(text: string): boolean {
  return /^0+%?$/.test(text);
}
