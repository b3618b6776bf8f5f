import { readFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../lib/run.ts";
import type { PackageName } from "./contents.ts";
import { compressedEntry, type Entry, textEntry } from "./entry.ts";

/** Documentation and completion scripts that the programs print. */
export interface Documents {
  /** The manual pages by name and section: `forage-node-ls.1`. */
  readonly manPages: Readonly<Record<string, string>>;
  /** The completion scripts by shell. */
  readonly completions: Readonly<Record<"bash" | "zsh" | "fish", string>>;
}

const COMPLETION_PATHS = {
  bash: "usr/share/bash-completion/completions/forage",
  zsh: "usr/share/zsh/vendor-completions/_forage",
  fish: "usr/share/fish/vendor_completions.d/forage.fish",
} as const;
const SHELLS = ["bash", "zsh", "fish"] as const;

/** Runs the programs in `dist/`, which must be built. */
export async function collectDocuments(checkout: string): Promise<Documents> {
  const print = async (...args: readonly string[]): Promise<string> =>
    (await run(process.execPath, args, { cwd: checkout })).stdout;
  const pages = JSON.parse(await print("cli/src/man/write-man-pages.ts")) as Readonly<Record<string, string>>;
  const completions = await Promise.all(SHELLS.map((shell) => print("dist/forage.mjs", "completion", shell)));
  const [bash = "", zsh = "", fish = ""] = completions;
  return {
    manPages: Object.fromEntries(Object.entries(pages).map(([name, text]) => [`${name}.1`, text])),
    completions: { bash, zsh, fish },
  };
}

/** Returns the documentation of the package. */
export function documentEntries(name: PackageName, checkout: string, documents: Documents): Entry[] {
  const read = (file: string): string => readFileSync(join(checkout, file), "utf8");
  const shared = [
    textEntry(`usr/share/doc/${name}/copyright`, read("LICENSE")),
    compressedEntry(`usr/share/doc/${name}/changelog`, read("CHANGELOG.md")),
  ];
  if (name !== "forage") return shared;
  return [
    ...shared,
    ...Object.entries(documents.manPages).map(([page, text]) =>
      compressedEntry(`usr/share/man/man1/${page}`, text),
    ),
    ...SHELLS.map((shell) => textEntry(COMPLETION_PATHS[shell], documents.completions[shell])),
  ];
}
