import { randomInt } from "node:crypto";

/** Letters and digits that can't be confused with one another, so that names can be read aloud. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/** Returns a name of this many random lowercase letters and digits. */
export function randomName(length: number): string {
  let name = "";
  for (let index = 0; index < length; index++) name += ALPHABET[randomInt(ALPHABET.length)];
  return name;
}
