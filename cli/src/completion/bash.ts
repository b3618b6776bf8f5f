import type { CommandCompletion, FlagOffer } from "./describe-commands.ts";

export function bashScript(places: readonly CommandCompletion[]): string {
  const paths = places.slice(1).map(({ path }) => `"${path}"`);
  return `# Completion of forage for bash: forage completion bash > /etc/bash_completion.d/forage
_forage() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" place="forage" index words=""
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$place \${COMP_WORDS[index]}" in
      ${paths.join(" | ")}) place="$place \${COMP_WORDS[index]}" ;;
    esac
  done
  case "$place:$previous" in
${places.flatMap(valueCases).join("\n")}
  esac
  case "$place:$current" in
${places.map(({ path, flags }) => `    "${path}:-"*) words="${flags.map(({ name }) => `--${name}`).join(" ")}" ;;`).join("\n")}
${places.map(({ path, words }) => `    "${path}:"*) words="${words.map(({ word }) => word).join(" ")}" ;;`).join("\n")}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -F _forage forage
`;
}

function valueCases({ path, flags }: CommandCompletion): string[] {
  const ofKind = (kind: "file" | "text"): string[] =>
    flags.filter(({ value }) => value === kind).flatMap(spellings);
  const patterns = (names: readonly string[]): string => names.map((name) => `"${path}:${name}"`).join(" | ");
  const cases = [
    `    ${patterns(ofKind("file"))})`,
    "      compopt -o filenames",
    '      mapfile -t COMPREPLY < <(compgen -f -- "$current")',
    "      return ;;",
  ];
  for (const flag of flags) {
    if (typeof flag.value === "string") continue;
    cases.push(`    ${patterns(spellings(flag))})`);
    cases.push(
      `      mapfile -t COMPREPLY < <(compgen -W "${flag.value.join(" ")}" -- "$current")`,
      "      return ;;",
    );
  }
  return [...cases, `    ${patterns(ofKind("text"))}) return ;;`];
}

function spellings({ name, short }: FlagOffer): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}
