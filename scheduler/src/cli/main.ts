import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { SchedulerError } from "../scheduler-error.ts";
import type { Profile } from "../types.ts";
import { answer, type ScenarioAnswer } from "./answer.ts";
import { parseScenario, type Scenario } from "./scenario.ts";

const USAGE = `Usage: schedule [--profile pack|kube-most|kube-least] [--follow answers.jsonl] < scenarios.jsonl > answers.jsonl
Without --profile each scenario's own profile ("most" or "least") decides.`;

const PROFILES: Readonly<Record<string, Profile>> = {
  pack: "pack",
  "kube-most": "kube-most",
  most: "kube-most",
  "kube-least": "kube-least",
  least: "kube-least",
};

const EXIT_REFUSED = 1;
const EXIT_USAGE = 2;

async function run(): Promise<number> {
  const options = readOptions();
  if (options === undefined) return EXIT_USAGE;
  const followed = options.follow === undefined ? undefined : await readAnswers(options.follow);
  let refused = false;
  let line = 0;
  for await (const text of createInterface({ input: process.stdin })) {
    line++;
    if (text.trim() === "") continue;
    try {
      const scenario = parseScenario(text);
      const reply = answer(scenario, options.profile ?? profileOf(scenario), followOf(followed, scenario));
      if (!process.stdout.write(`${JSON.stringify(reply)}\n`)) await drained();
    } catch (error) {
      if (!(error instanceof SchedulerError)) throw error;
      process.stderr.write(`line ${line}: ${error.message}\n`);
      refused = true;
    }
  }
  return refused ? EXIT_REFUSED : 0;
}

function readOptions(): { profile: Profile | undefined; follow: string | undefined } | undefined {
  try {
    const { values } = parseArgs({ options: { profile: { type: "string" }, follow: { type: "string" } } });
    const profile = values.profile === undefined ? undefined : PROFILES[values.profile];
    if (values.profile !== undefined && profile === undefined)
      throw new Error(`unknown profile ${values.profile}`);
    return { profile, follow: values.follow };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}\n`);
    return undefined;
  }
}

async function readAnswers(path: string): Promise<Map<string, ScenarioAnswer>> {
  const answers = new Map<string, ScenarioAnswer>();
  for await (const text of createInterface({ input: createReadStream(path) })) {
    if (text.trim() === "") continue;
    const given = JSON.parse(text) as ScenarioAnswer;
    answers.set(given.id, given);
  }
  return answers;
}

function followOf(
  followed: Map<string, ScenarioAnswer> | undefined,
  { id }: Scenario,
): ScenarioAnswer | undefined {
  const given = followed?.get(id);
  if (followed !== undefined && given === undefined) {
    throw new SchedulerError("invalid_scenario", `id: no answer to follow for ${id}`, "id");
  }
  return given;
}

function profileOf(scenario: Scenario): Profile {
  return scenario.profile === "most" ? "kube-most" : "kube-least";
}

function drained(): Promise<void> {
  return new Promise((resolve) => process.stdout.once("drain", resolve));
}

try {
  process.exitCode = await run();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = EXIT_USAGE;
}
