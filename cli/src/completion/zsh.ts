import type { CommandCompletion, FlagOffer, Offer } from "./describe-commands.ts";

export function zshScript(places: readonly CommandCompletion[]): string {
  const paths = places.slice(1).map(({ path }) => `'${path}'`);
  return `#compdef forage
# Completion of forage for zsh: forage completion zsh > "\${fpath[1]}/_forage"
_forage() {
  local place="forage" index previous="\${words[CURRENT - 1]}" current="\${words[CURRENT]}"
  local -a offers
  for ((index = 2; index < CURRENT; index++)); do
    case "$place \${words[index]}" in
      ${paths.join("|")}) place="$place \${words[index]}" ;;
    esac
  done
  case "$place:$previous" in
${places.flatMap(({ path, flags }) => flags.flatMap((flag) => valueCase(path, flag))).join("\n")}
  esac
  case "$place:$current" in
${places.map(flagCase).join("\n")}
${places.map(({ path, words }) => `    '${path}:'*) offers=(${words.map(offerText).join(" ")}) ;;`).join("\n")}
  esac
  _describe forage offers
}
if [ "$funcstack[1]" = _forage ]; then _forage "$@"; else compdef _forage forage; fi
`;
}

function valueCase(path: string, { name, short, value }: FlagOffer): string[] {
  if (value === "none") return [];
  const patterns = [`'${path}:--${name}'`, ...(short === undefined ? [] : [`'${path}:-${short}'`])].join("|");
  if (value === "file") return [`    ${patterns}) _files; return ;;`];
  return [`    ${patterns}) ${value === "text" ? "" : `compadd -- ${value.join(" ")}; `}return ;;`];
}

function flagCase({ path, flags }: CommandCompletion): string {
  const offers = flags.map(({ name, help }) => offerText({ word: `--${name}`, help }));
  return `    '${path}:-'*) offers=(${offers.join(" ")}) ;;`;
}

/** Returns a suggestion in the form of zsh's _describe, such as `'word:help'`. */
function offerText({ word, help }: Offer): string {
  const text = help === "" ? word : `${word}:${help}`;
  return `'${text.replaceAll("'", "'\\''")}'`;
}
