import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const names = readdirSync(import.meta.dirname).filter((name) =>
  existsSync(join(import.meta.dirname, name, "main.ts")),
);
const [name = "", ...rest] = process.argv.slice(2);
if (!names.includes(name)) {
  console.error(`usage: npm run bench -- NAME [options]\nNAME is one of ${names.join(", ")}`);
  process.exit(2);
}
// Each benchmark reads its own options from the usual place in process.argv.
process.argv.splice(2, process.argv.length, ...rest);
const { main } = (await import(`./${name}/main.ts`)) as { main?: () => Promise<void> };
await main?.();
