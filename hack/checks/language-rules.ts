import type { Text, TextKind } from "./scan-texts.ts";

/** A mark of unclear English in a text. */
export interface Mark {
  readonly text: Text;
  /** The name of the rule. */
  readonly rule: string;
  /** The words that the rule matched. */
  readonly match: string;
}

interface Rule {
  readonly name: string;
  readonly pattern: RegExp;
  /** The kinds of texts that the rule applies to. Default: all. */
  readonly kinds?: readonly TextKind[];
}

/**
 * The rules help reviewers, but don't define good English. Each finds a habit that makes sentences hard to read:
 * sentences without a subject or verb, software that acts like a person, and words that most readers have to look up.
 */
const RULES: readonly Rule[] = [
  { name: "headless clause", pattern: /(?:^|[.:] )(?:What|Who|Whoever|Whose|Whatever|Whom)\b(?![^.]*\?)/ },
  {
    // Doc comments begin with a noun or a verb: "The time of …", "Returns …". "Whether" describes a boolean.
    name: "headless doc comment",
    pattern:
      /^(?:(?:(?:How|Where|Which|Why|That|Than|Of|Those|So that|Pure:)(?!\w)|(?:Since|Until|From) when\b|(?:By|In|With|From|To|For|As) (?:how|what|which|whom)\b)|When [^,]*$)/,
    kinds: ["doc-comment"],
  },
  {
    name: "headless title",
    pattern: /^(?:what|who|whoever|whose|whatever|whom)\b(?![^.]*\?)/i,
    kinds: ["test-title"],
  },
  {
    name: "genitive fragment",
    pattern: /(?:^|[.] )Of (?:the|a|an|all|each|one|those|what|its|this|these|which)\b/,
  },
  { name: "archaic word", pattern: /\b(?:anew|nobody|for want of|in force|heard of|to be had)\b/i },
  { name: "is to be", pattern: /\b(?:is|are|was|were) to be\b(?! able)/ },
  {
    name: "double negative",
    pattern: /\b(?:so that [^.,;]{0,60}\bnot\b|nothing but|not nothing|no\w* [^.,;]{0,30}\bnothing\b)/i,
  },
  {
    name: "imperative of speech",
    pattern: /(?:^|[.:;] )(?:[Tt]ell|[Ss]ay|[Ll]ook(?!-?s?[ -]?up| for\b|-around))\b/,
  },
  {
    name: "software as a person",
    pattern:
      /\b(?:believe[sd]?|believing|(?:tells|told|telling)\b(?! apart)|hears?|heard|doubts?|doubted|wants|wanted|said|knows of|asks for|asked for|looks? at|looked at|is owed|comes again|gives up|given up)\b/i,
  },
];

/** Texts that are data of tests, with the reasons. */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map([
  ['secret db has no key "nobody"', "a name of Unix"],
  ["exec nobody -- true", "a name of Unix"],
  ["workspace ls --owner nobody", "a name of Unix"],
  ["cat /etc/resolv.conf; nslookup nobody.e2e.svc.cluster.local", "a name of Unix"],
  ["/say.sh: image hello forage $(WHO) $(NOBODY) $(LAST) $WHO\\n", "a name of a variable"],
]);

/** Returns the first mark of each rule that a text has. */
export function findMarks(text: Text): readonly Mark[] {
  if (EXCEPTIONS.has(text.text)) return [];
  // Names in code are not checked.
  const prose = text.text.replaceAll(/`[^`]*`/g, "`…`");
  return RULES.flatMap(({ name, pattern, kinds }) => {
    if (kinds !== undefined && !kinds.includes(text.kind)) return [];
    const found = pattern.exec(prose);
    return found ? [{ text, rule: name, match: found[0] }] : [];
  });
}
