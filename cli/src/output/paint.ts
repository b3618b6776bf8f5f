import type { OutputStream, World } from "../world.ts";

export type Style = "good" | "bad" | "busy" | "faint" | "strong";
export type Paint = (style: Style, text: string) => string;

const CODES: Readonly<Record<Style, readonly [number, number]>> = {
  good: [32, 39],
  bad: [31, 39],
  busy: [33, 39],
  faint: [2, 22],
  strong: [1, 22],
};

/**
 * Returns a function that colours text if the stream is a terminal and colours are not disabled.
 */
export function paintFor(stream: OutputStream, env: World["env"], noColor: boolean): Paint {
  const off = noColor || stream.isTTY !== true || (env.NO_COLOR ?? "") !== "" || env.TERM === "dumb";
  return off ? plain : colour;
}

export const plain: Paint = (_style, text) => text;

const colour: Paint = (style, text) => {
  const [on, off] = CODES[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
};
