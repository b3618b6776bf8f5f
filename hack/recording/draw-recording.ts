/** A line of the terminal, and the time at which it appears. */
export interface RecordedLine {
  readonly atMs: number;
  readonly text: string;
  /** The time that a person needs to type it. Undefined for output. */
  readonly typedMs?: number;
}

export interface RecordingOptions {
  readonly title: string;
  readonly columns: number;
  readonly rows: number;
  /** The time for which the last screen is shown before the recording restarts. */
  readonly restMs: number;
}

const CHAR_PX = 7.83;
const LINE_PX = 18;
const FONT_PX = 13;
const MARGIN_PX = 16;
const BAR_PX = 30;
/** The part of a line that is below its baseline. */
const DESCENT_PX = 5;

/**
 * Draws a recording as an animated SVG that needs no script and no other file. It uses the reader's choice of light or
 * dark. Readers who prefer less motion see only the last screen.
 */
export function drawRecording(lines: readonly RecordedLine[], options: RecordingOptions): string {
  const { title, columns, rows, restMs } = options;
  const wrapped = lines.flatMap((line) => wrap(line, columns));
  const lastMs = Math.max(0, ...wrapped.map(({ atMs, typedMs = 0 }) => atMs + typedMs));
  const totalMs = lastMs + restMs;
  const width = Math.ceil(columns * CHAR_PX + 2 * MARGIN_PX);
  const height = rows * LINE_PX + BAR_PX + MARGIN_PX;
  const percent = (ms: number): string => `${Number(((ms / totalMs) * 100).toFixed(3))}%`;
  const offset = (count: number): number => -Math.max(0, count - rows) * LINE_PX;
  const scroll = wrapped.map(
    ({ atMs }, index) => [percent(atMs), `transform:translateY(${offset(index + 1)}px)`] as const,
  );
  const keyframes = wrapped.map(({ atMs }, index) =>
    keyframesOf(`l${index}`, [
      ["0%", "visibility:hidden"],
      [percent(atMs), "visibility:visible"],
    ]),
  );
  const clips = wrapped.flatMap(({ atMs, typedMs, text }, index) =>
    typedMs === undefined ? [] : [typing(index, text.length, percent(atMs), percent(atMs + typedMs))],
  );
  const texts = wrapped.map(({ text, typedMs }, index) => {
    const clip = typedMs === undefined ? "" : ` clip-path="url(#c${index})"`;
    const kind = typedMs === undefined ? "o" : "i";
    return `<text class="${kind}" style="animation-name:l${index}" y="${(index + 1) * LINE_PX}"${clip}>${escapeXml(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}">
<style>
svg{--b:#f6f8fa;--e:#d1d9e0;--o:#1f2328;--i:#0550ae}
@media(prefers-color-scheme:dark){svg{--b:#0d1117;--e:#3d444d;--o:#d1d7e0;--i:#79c0ff}}
.w{fill:var(--b);stroke:var(--e)}.t{fill:var(--o);font:12px sans-serif;text-anchor:middle}
text{white-space:pre}.o,.i{fill:var(--o);font:${FONT_PX}px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}.i{fill:var(--i);font-weight:bold}
.s{transform:translateY(${offset(wrapped.length)}px)}
${keyframesOf("s", [["0%", "transform:translateY(0px)"], ...scroll])}
${[...keyframes, ...clips.map(({ keyframes }) => keyframes)].join("\n")}
.s{animation-name:s}
@media(prefers-reduced-motion:no-preference){.o,.i,.s,.c{animation-duration:${totalMs}ms;animation-iteration-count:infinite;animation-timing-function:step-end}}
</style>
<rect class="w" x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="8"/>
<text class="t" x="${width / 2}" y="20">${escapeXml(title)}</text>
<clipPath id="screen"><rect x="0" y="${BAR_PX + DESCENT_PX}" width="${width}" height="${rows * LINE_PX}"/></clipPath>
${clips.map(({ element }) => element).join("\n")}
<g clip-path="url(#screen)"><g transform="translate(${MARGIN_PX} ${BAR_PX})"><g class="s">
${texts.join("\n")}
</g></g></g>
</svg>
`;
}

/** Returns a clip that uncovers a line character by character, with the keyframes that move it. */
function typing(
  index: number,
  characters: number,
  from: string,
  to: string,
): { readonly element: string; readonly keyframes: string } {
  const width = Math.ceil(characters * CHAR_PX) + 4;
  return {
    element: `<clipPath id="c${index}"><rect class="c" style="animation-name:c${index}" y="${index * LINE_PX}" width="${width}" height="${LINE_PX + 6}"/></clipPath>`,
    keyframes: keyframesOf(`c${index}`, [
      ["0%", "width:0"],
      [from, `width:0;animation-timing-function:steps(${characters})`],
      [to, `width:${width}px`],
    ]),
  };
}

/**
 * Returns the rule of an animation. If several steps have the same time, the last one is used. Steps that change
 * nothing are left out.
 */
function keyframesOf(name: string, steps: readonly (readonly [at: string, style: string])[]): string {
  const byTime = [...new Map(steps)].filter(([, style], index, all) => style !== all[index - 1]?.[1]);
  return `@keyframes ${name}{${byTime.map(([at, style]) => `${at}{${style}}`).join("")}}`;
}

/** Splits a line that is wider than the terminal. The parts appear together. */
function wrap(line: RecordedLine, columns: number): readonly RecordedLine[] {
  const parts = line.text.match(new RegExp(`.{1,${columns}}`, "gu")) ?? [""];
  return parts.map((text) => ({ ...line, text }));
}

function escapeXml(text: string): string {
  const names: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replaceAll(/[&<>"]/g, (character) => names[character] ?? character);
}
