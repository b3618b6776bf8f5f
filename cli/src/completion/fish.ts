import type { CommandCompletion, FlagOffer } from "./describe-commands.ts";

export function fishScript(places: readonly CommandCompletion[]): string {
  const paths = places.slice(1).map(({ path }) => `'${path}'`);
  return `# Completion of forage for fish: forage completion fish > ~/.config/fish/completions/forage.fish
function __forage_is_at
    set -l place forage
    for word in (commandline -opc)[2..-1]
        switch "$place $word"
            case ${paths.join(" ")}
                set place "$place $word"
        end
    end
    test "$place" = "$argv[1]"
end
complete -c forage -f
${places.flatMap(linesOf).join("\n")}
`;
}

function linesOf({ path, words, flags }: CommandCompletion): string[] {
  const condition = `complete -c forage -n "__forage_is_at '${path}'"`;
  const wordLines = words.map(
    ({ word, help }) => `${condition} -a ${quote(word)}${help === "" ? "" : ` -d ${quote(help)}`}`,
  );
  return [...wordLines, ...flags.map((flag) => `${condition} ${flagText(flag)}`)];
}

function flagText({ name, short, help, value }: FlagOffer): string {
  const names = `-l ${name}${short === undefined ? "" : ` -s ${short}`}`;
  return `${names}${valueText(value)} -d ${quote(help)}`;
}

function valueText(value: FlagOffer["value"]): string {
  if (value === "none") return "";
  if (value === "file") return " -r -F";
  return value === "text" ? " -x" : ` -x -a ${quote(value.join(" "))}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
