/** Returns the anchor of a heading, as code hosts such as GitHub make it, so that a link works there and on the site. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}
