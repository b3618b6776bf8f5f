import { CliError } from "../errors.ts";

/** A position in a manifest. Line and column start at 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface Problem {
  readonly position: Position;
  /**
   * The path of the field, such as `resources[0].container_service.container.image`. Empty for a
   * document as a whole.
   */
  readonly path: string;
  readonly message: string;
}

/**
 * The most problems shown: one broken template must not push the first and most useful ones off the
 * screen.
 */
const MAX_SHOWN = 20;

/** Formats a problem: `hello.yaml:3:5: resources[0].name: must be text`. */
export function formatProblem({ position, path, message }: Problem): string {
  const { file, line, column } = position;
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}`;
}

/** The error for an invalid manifest, with the position of each problem. */
export class ManifestError extends CliError {
  readonly problems: readonly Problem[];

  constructor(message: string, problems: readonly Problem[], options: { readonly cause?: unknown } = {}) {
    super("MANIFEST", message, options);
    this.problems = problems;
  }
}

export function manifestError(problems: readonly Problem[], heading: string): ManifestError {
  const lines = problems.slice(0, MAX_SHOWN).map((problem) => `  ${formatProblem(problem)}`);
  const rest = problems.length - MAX_SHOWN;
  if (rest > 0) lines.push(`  and ${rest} more`);
  return new ManifestError([heading, ...lines].join("\n"), problems);
}
