import { describeRule } from "../../../../test/support/rules.ts";
import {
  configKeyProblem,
  dnsLabelProblem,
  dnsSubdomainProblem,
  envNameProblem,
  labelKeyProblem,
  labelValueProblem,
  portNameProblem,
} from "./names.ts";

const label = "x".repeat(63);

describeRule("dnsLabelProblem", (text: string) => dnsLabelProblem(text), {
  valid: ["a", "0", "a-b", "a--b", label],
  invalid: ["", "A", "-a", "a-", "a.b", "a_b", "ä", "a\n", `${label}x`],
});

describeRule("dnsLabelProblem with a limit of its own", (text: string) => dnsLabelProblem(text, 5), {
  valid: ["abcde"],
  invalid: ["abcdef"],
});

describeRule("dnsSubdomainProblem", dnsSubdomainProblem, {
  valid: ["a", "a.b", "a-1.b2", `${label}.${label}.${label}.${"x".repeat(61)}`],
  invalid: ["", ".", "a.", ".a", "a..b", "a.-b", "A.b", `${label}.${label}.${label}.${"x".repeat(62)}`],
});

describeRule("portNameProblem", portNameProblem, {
  valid: ["http", "h2c-1", "a".repeat(15)],
  invalid: ["", "80", "-a", "a--b", "Http", "a".repeat(16), "a_b"],
});

describeRule("labelKeyProblem", labelKeyProblem, {
  valid: ["a", "A.b_c-9", "example.com/Name", label, `${"a".repeat(63)}.example/x`],
  invalid: ["", "/a", "a/", "a/b/c", "-a", "a-", "Example.com/a", "a b", `${label}x`, `${"a".repeat(254)}/x`],
});

describeRule("labelValueProblem", labelValueProblem, {
  valid: ["", "A", "1.2_3-a", label],
  invalid: ["-", "a-", ".a", "a/b", "a b", "ü", `${label}x`],
});

describeRule("envNameProblem", envNameProblem, {
  valid: ["A", "_", "a.b-c", "A1"],
  invalid: ["", "1A", "A=B", "A B", "Ä", "A\0", "x".repeat(1025)],
});

describeRule("configKeyProblem", configKeyProblem, {
  valid: ["a", ".hidden", "A-b_c.9"],
  invalid: ["", ".", "..", "..a", "a/b", "a b", "x".repeat(254)],
});
