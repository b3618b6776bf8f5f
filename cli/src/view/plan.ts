import type {
  FieldChange,
  PlannedPlacement,
  PlannedResource,
  PlannedStep,
} from "@forage/proto/forage/operator/v1/operator";
import type { Paint, Style } from "../output/paint.ts";
import { plainText } from "../output/plain-text.ts";

/** Prints the number of a round once for all its steps. */
interface Rounds {
  readonly first: number;
  readonly last: number;
  readonly steps: readonly PlannedStep[];
}

const marks: Readonly<Record<string, readonly [string, Style | undefined]>> = {
  create: ["+", "good"],
  update: ["~", "busy"],
  remove: ["-", "bad"],
  unchanged: ["=", undefined],
};

/**
 * Describes what an apply would do with one resource: the changed fields, then the steps, round by
 * round.
 */
export function describePlanned(resource: PlannedResource, paint: Paint): string {
  const { kind, name, action, changes, steps, notes } = resource;
  const [mark, style] = marks[action] ?? ["?", undefined];
  const title = `${mark} ${plainText(`${kind}/${name}`)}  ${action}`;
  const head = style === undefined ? title : paint(style, title);
  return [
    `${head}\n`,
    ...changes.map((change) => `    ${changeText(change)}\n`),
    ...roundsOf(steps).map((rounds) => roundText(rounds, paint)),
    ...notes.map((note) => `    ${paint("strong", plainText(note))}\n`),
  ].join("");
}

function changeText({ path, before, after }: FieldChange): string {
  const text =
    before === undefined
      ? `+ ${path}: ${quoted(after)}`
      : after === undefined
        ? `- ${path}: ${quoted(before)}`
        : `~ ${path}: ${quoted(before)} → ${quoted(after)}`;
  return plainText(text);
}

function quoted(text: string | undefined): string {
  return JSON.stringify(text ?? "");
}

function roundText({ first, last, steps }: Rounds, paint: Paint): string {
  const number = first === last ? `${first}.` : `${first}.–${last}.`;
  const lines = steps.flatMap((step) => stepLines(step, first !== last));
  return lines
    .map((line, index) => `    ${paint("faint", (index === 0 ? number : "").padEnd(4))} ${plainText(line)}\n`)
    .join("");
}

function stepLines({ step, count, pod, why, detail, placements }: PlannedStep, repeated: boolean): string[] {
  const subject = count > 0 ? ` ${count}` : pod === "" || repeated ? "" : ` ${pod}`;
  const more = detail === "" ? "" : ` (${detail})`;
  return [`${step}${subject}${more}${why === "" ? "" : `: ${why}`}`, ...placements.map(placementText)];
}

function placementText({ node, pods, why }: PlannedPlacement): string {
  const which = node === "" ? `  ${pods} on no node` : `  ${pods} on ${node}`;
  return why === "" ? which : `${which}: ${why}`;
}

function roundsOf(steps: readonly PlannedStep[]): Rounds[] {
  const byRound = new Map<number, PlannedStep[]>();
  for (const step of steps) byRound.set(step.round, [...(byRound.get(step.round) ?? []), step]);
  const found: Rounds[] = [];
  for (const [round, its] of byRound) {
    const before = found.at(-1);
    if (before !== undefined && sameWay(before.steps, its))
      found[found.length - 1] = { ...before, last: round };
    else found.push({ first: round, last: round, steps: its });
  }
  return found;
}

/** Reports whether two rounds have the same steps, except for the names of pods. */
function sameWay(a: readonly PlannedStep[], b: readonly PlannedStep[]): boolean {
  const words = (steps: readonly PlannedStep[]): string =>
    JSON.stringify(
      steps.map(({ step, count, why, detail, placements }) => [step, count, why, detail, placements]),
    );
  return words(a) === words(b);
}
