import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A line of a source file that breaks a rule. */
export interface Offence {
  /** The path relative to the root of the repository. */
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** The folders whose code runs in Forage's programs. */
const PROGRAM_FOLDERS = [
  "common",
  "identity",
  "archive",
  "coordinator",
  "agent",
  "cli",
  "scheduler",
] as const;

/** Reads all hand-written TypeScript of the project, tests included. */
export function readAllSources(root: string): readonly SourceFile[] {
  return globSync("**/*.ts", { cwd: root, exclude: ["**/node_modules/**", "**/gen/**", "**/dist/**"] })
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** Reads the sources of Forage's programs, without tests and generated code. */
export function readProgramSources(root: string): readonly SourceFile[] {
  return PROGRAM_FOLDERS.flatMap((folder) => globSync(`${folder}/src/**/*.ts`, { cwd: root }))
    .filter((path) => !path.endsWith(".test.ts"))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/**
 * Returns the listeners for an abort that a file adds but never removes. A signal that lives longer than its listeners
 * keeps all of them, and each one slows down adding the next.
 */
export function findKeptAbortListeners({ path, text }: SourceFile): readonly Offence[] {
  const added = matchingLines(path, text, /addEventListener\("abort"/);
  const removed = matchingLines(path, text, /removeEventListener\("abort"/);
  return removed.length >= added.length ? [] : added;
}

/** Returns the calls of `AbortSignal.any`, which leak memory in a signal that lives long. `linkSignals` doesn't. */
export function findUnlinkedSignals({ path, text }: SourceFile): readonly Offence[] {
  return matchingLines(path, text, /\bAbortSignal\.any\(/);
}

/**
 * Returns assignments like `this.#work ??= this.#doWork()`, where the method clears the field itself. A method that
 * ends before its first `await` clears the field before the assignment, and then the work is never started again.
 */
export function findKeptPromises({ path, text }: SourceFile): readonly Offence[] {
  return matchingLines(path, text, /this\.#\w+ \?\?= this\.#\w+\(.*\);$/);
}

/**
 * Returns the lines of the agent and the coordinator that calculate with the wall clock, directly or through a
 * variable. It may be set back or ahead at any time, so waits and durations must use the monotonic clock.
 */
export function findWallClockSums({ path, text }: SourceFile): readonly Offence[] {
  if (!/^(?:agent|coordinator)\//.test(path)) return [];
  const read = text.matchAll(
    /\b(?:const|let) (\w+) = [\w.#?]*\b(?:nowMs|now)\(\)|\b(\w+): [\w.#]*\bnowMs\(\)/g,
  );
  const variables = new Set([...read].map(([, constant, property]) => constant ?? property));
  const times = ["nowMs\\(\\)", "now\\(\\)", ...variables].join("|");
  const sum = new RegExp(`\\bDate\\.now\\(\\)|\\b(?:${times}) [-+] |[-+] [\\w.#]*\\b(?:${times})(?!\\w)`);
  return matchingLines(path, text, sum).filter(({ text: line }) => !/^(?:\/?\*|\/\/)/.test(line));
}

/**
 * Returns the constants of a module whose names are not in UPPER_SNAKE_CASE. Constants are numbers, strings and regular
 * expressions written in one line; results of calls are not.
 */
export function findCamelCaseConstants({ path, text }: SourceFile): readonly Offence[] {
  return text.split("\n").flatMap((line, index) => {
    const constant =
      /^(?:export )?const [a-z]\w*(?:: [^=]+)? = (?:-?[\d._]+n?|"[^"]*"|`[^`$]*`|\/.+\/[a-z]*)( [-+*] [\d._]+)*;$/;
    return constant.test(line) ? [{ path, line: index + 1, text: line }] : [];
  });
}

/**
 * Returns the members of unions that are distinguished by `kind` instead of `type`. The kind of an object, such as a
 * pod, is a different concept.
 */
export function findKindDiscriminants({ path, text }: SourceFile): readonly Offence[] {
  return matchingLines(path, text, /\breadonly kind: "/);
}

/** Returns the members of unions whose `type` is in camelCase. */
export function findCamelCaseTypes({ path, text }: SourceFile): readonly Offence[] {
  return matchingLines(path, text, /\breadonly type: (?:"[\w-]*" \| )*"[a-z]+[A-Z]/);
}

/**
 * Returns the exported classes of errors that don't set their own name, which logs and stacks then show as a plain
 * `Error`.
 */
export function findUnnamedErrors({ path, text }: SourceFile): readonly Offence[] {
  return matchingLines(path, text, /^export class \w+ extends Error\b/).filter((offence) => {
    const [, name] = /class (\w+)/.exec(offence.text) ?? [];
    return !text.includes(`name = "${name}";`);
  });
}

function matchingLines(path: string, text: string, pattern: RegExp): readonly Offence[] {
  return text
    .split("\n")
    .map((line, index) => ({ path, line: index + 1, text: line.trim() }))
    .filter((offence) => pattern.test(offence.text));
}
