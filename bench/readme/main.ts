import { measureApply } from "../apply/main.ts";
import { readmeTable } from "./table.ts";

/** Measures the figures of README's table in one run and prints the table. */
export async function main(): Promise<void> {
  const figures = await measureApply();
  for (const line of readmeTable(figures)) console.log(line);
  console.log(JSON.stringify({ bench: "readme", ...figures }));
}
