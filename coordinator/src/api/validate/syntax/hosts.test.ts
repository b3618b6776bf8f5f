import { describeRule } from "../../../../test/support/rules.ts";
import { addressProblem, hostnamePatternProblem, hostnameProblem, serverProblem } from "./hosts.ts";

const label = "x".repeat(63);

describeRule("hostnameProblem", hostnameProblem, {
  valid: ["a", "api.example.com", `${label}.example`],
  invalid: [
    "",
    "*.example.com",
    "API.example.com",
    "192.0.2.1",
    "::1",
    "[::1]",
    "a.example.com:80",
    "a..b",
    `${label}x.example`,
  ],
});

describeRule("hostnamePatternProblem", hostnamePatternProblem, {
  valid: ["api.example.com", "*.example.com", "*.com"],
  invalid: ["", "*", "*.", "a.*.com", "*a.example.com", "*.*.com", "*.192.0.2.1", "example.com.", "a b"],
});

describeRule("addressProblem", addressProblem, {
  valid: ["192.0.2.1", "2001:db8::1", "::1"],
  invalid: ["", "192.0.2", "192.0.2.256", "example.com", "fe80::1%eth0", "[::1]"],
});

describeRule("serverProblem", serverProblem, {
  valid: ["nfs.example.com", "nfs", "192.0.2.1", "2001:db8::1"],
  invalid: ["", "-o", "a:/b", "a,b", "a b", "fe80::1%eth0"],
});
