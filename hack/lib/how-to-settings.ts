import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface SettingsExample {
  readonly page: string;
  readonly text: string;
}

/** Returns the examples of a configuration file in the how-tos: those that are no manifest, and follow the file's name. */
export function settingsInHowTos(file: "agent.yaml" | "coordinator.yaml"): readonly SettingsExample[] {
  const root = join(import.meta.dirname, "../..");
  return globSync("docs/how-to/*.md", { cwd: root }).flatMap((page) =>
    examplesIn(readFileSync(join(root, page), "utf8"))
      .filter((example) => example.file === file)
      .map(({ text }) => ({ page, text })),
  );
}

/** Returns the YAML examples of a page, each with the configuration file that the text before it names last. */
export function examplesIn(
  page: string,
): readonly { readonly file: string | undefined; readonly text: string }[] {
  const blocks = [...page.matchAll(/^( *)```yaml\n([\s\S]*?)^ *```/gm)];
  return blocks
    .map(({ index, 1: indent = "", 2: text = "" }) => ({
      file: [...page.slice(0, index).matchAll(/`(?:[^`\s]*\/)?([a-z]+\.yaml)`/g)].at(-1)?.[1],
      text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    }))
    .filter(({ text }) => !/^resources:$/m.test(text));
}
