import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

// Each encode() of ts-proto begins with a new writer, whose buffer it doubles until the message fits. These
// writers are exchanged for kept ones, whose buffer is large enough already. See src/binary-writer.ts.
const NEW_WRITER = "writer: BinaryWriter = new BinaryWriter()";

/**
 * @param {string} file
 * @param {string} dir The directory of generated code, beside which src/ lies.
 */
export function useKeptWriters(file, dir) {
  const text = readFileSync(file, "utf8");
  if (!/^ {2}encode\(/m.test(text)) {
    return;
  }
  if (!text.includes(NEW_WRITER)) {
    throw new Error(`${file}: generated code has changed, the writers of encode() were not found`);
  }
  const module = relative(dirname(file), join(dir, "../src/binary-writer.ts"));
  const exchanged = text
    .replace(/^import /m, `import { keptWriter } from "${module}";\nimport `)
    .replaceAll(NEW_WRITER, "writer: BinaryWriter = keptWriter()");
  writeFileSync(file, exchanged);
}
