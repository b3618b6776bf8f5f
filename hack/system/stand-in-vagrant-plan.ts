/** The suffix in the name of the lab whose hosts replace Vagrant's machines. */
export const LETTER = "v";
