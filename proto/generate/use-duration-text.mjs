import { readFileSync, writeFileSync } from "node:fs";

// ts-proto has no option for proto3 JSON's "1.5s" that keeps Duration a message: its fromJSON reads any text
// as zero without a word. So these two methods are exchanged. See src/duration-json.ts.
const FROM = /fromJSON\(object: any\): Duration \{\n[\s\S]*?\n {2}\},\n/;
const TO = /toJSON\(message: Duration\): unknown \{\n[\s\S]*?\n {2}\},\n/;
// Nothing else uses it then, and the compiler minds.
const LEFT_OVER = /function isSet\(value: any\): boolean \{\n[\s\S]*?\n\}\n/;

/** @param {string} file */
export function useDurationText(file) {
  const text = readFileSync(file, "utf8");
  if (!FROM.test(text) || !TO.test(text)) {
    throw new Error(`${file}: generated code has changed, its JSON methods were not found`);
  }
  const imports = 'import { durationFromJson, formatDuration } from "../../../src/duration-json.ts";\n';
  const exchanged = text
    .replace(/^import /m, `${imports}import `)
    .replace(LEFT_OVER, "")
    .replace(FROM, "fromJSON(object: any): Duration {\n    return durationFromJson(object);\n  },\n")
    .replace(TO, "toJSON(message: Duration): unknown {\n    return formatDuration(message);\n  },\n");
  writeFileSync(file, exchanged);
}
