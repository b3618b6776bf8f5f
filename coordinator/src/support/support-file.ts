/** One file of a support bundle. */
export interface SupportFile {
  readonly path: string;
  readonly content: string;
  /** The reason why the file or its end is missing; empty if it is complete. */
  readonly problem: string;
}

/** Returns the file, shortened at the end of a line if it is too long. */
export function limited(file: SupportFile, maxLength: number): SupportFile {
  const { content, problem } = file;
  if (content.length <= maxLength) return file;
  const end = content.lastIndexOf("\n", maxLength - 1) + 1;
  const cut = `cut off after ${end} of ${content.length} characters`;
  return { ...file, content: content.slice(0, end), problem: problem === "" ? cut : `${problem}; ${cut}` };
}
