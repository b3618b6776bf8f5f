import { describeRule } from "../../../../test/support/rules.ts";
import { imageProblem } from "./image.ts";

const DIGEST = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

describeRule("imageProblem", imageProblem, {
  valid: [
    "busybox",
    "busybox:1.37",
    "library/busybox",
    "registry.example/team/app:v1",
    "registry.example:5000/app",
    "localhost/app",
    "localhost:5000/a/b_c/d--e.f",
    "[2001:db8::1]:5000/app",
    `app@${DIGEST}`,
    `app:v1@${DIGEST}`,
  ],
  invalid: [
    "",
    " busybox",
    "Busybox",
    "--privileged",
    "-v",
    "app:",
    "app:v 1",
    "app@sha256:12",
    "http://registry.example/app",
    "a//b",
    "a/",
    "/a",
    "a\n",
    "a;reboot",
    "x".repeat(513),
  ],
});
