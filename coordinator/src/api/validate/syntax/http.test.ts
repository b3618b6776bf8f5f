import { describeRule } from "../../../../test/support/rules.ts";
import {
  headerNameProblem,
  headerValueProblem,
  matchedPathProblem,
  methodProblem,
  queryNameProblem,
  requestTargetProblem,
  urlPathProblem,
} from "./http.ts";

describeRule("headerNameProblem", headerNameProblem, {
  valid: ["X-A", "accept", "a_b.c!"],
  invalid: ["", ":authority", "a b", "a:", "ü", "a\r\nb", "x".repeat(257)],
});

describeRule("headerValueProblem", headerValueProblem, {
  valid: ["", "a b", "ü", "text/html; q=0.5"],
  invalid: [" a", "a ", "a\r\nSet-Cookie: b", "a\0", "x".repeat(4097)],
});

describeRule("methodProblem", methodProblem, {
  valid: ["", "GET", "PATCH", "PURGE", "M-SEARCH", "purge"],
  invalid: ["get", "Post", "GET ", "GET,POST", "G/T", "X".repeat(33)],
});

describeRule("queryNameProblem", queryNameProblem, {
  valid: ["debug", "filter[name]", "a.b"],
  invalid: ["", "a=b", "a&b", "a b", "a#b", "a\nb", "x".repeat(257)],
});

describeRule("urlPathProblem", urlPathProblem, {
  valid: ["/", "/a/b", "/a%20b", "/a//b", "/~x;y=1"],
  invalid: ["", "a", "/a b", "/a?b", "/a#b", "/ü", "/a%2", "/a\\b", `/${"x".repeat(1024)}`],
});

describeRule("matchedPathProblem", matchedPathProblem, {
  valid: ["/", "/a/b", "/a/", "/a.b/..."],
  invalid: ["", "a", "/a//b", "/a/../b", "/a/.", "/./a", "/a%2Fb", "/a%2fb", "/a?b"],
});

describeRule("requestTargetProblem", requestTargetProblem, {
  valid: ["/", "/healthz", "/healthz?full=1&x=%20"],
  invalid: ["", "healthz", "http://a/b", "/a b", "/a\r\n", "/a#b", "/ü"],
});
