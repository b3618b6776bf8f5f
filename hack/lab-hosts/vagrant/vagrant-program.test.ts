import assert from "node:assert/strict";
import { test } from "node:test";
import { errorIn, stateIn } from "./vagrant-program.ts";

test("the error is found in Vagrant's machine-readable output", () => {
  const output = [
    "1795720274,,ui,error,No usable default provider%!(VAGRANT_COMMA) says the user interface",
    "1795720274,h1,error-exit,Vagrant::Errors::NoDefaultProvider,No provider%!(VAGRANT_COMMA) such as\\nVirtualBox",
    "",
  ];
  assert.deepEqual(errorIn(output.join("\n")), {
    type: "Vagrant::Errors::NoDefaultProvider",
    message: "No provider, such as\nVirtualBox",
  });
  assert.equal(errorIn("1795720274,,ui,info,fine\n"), undefined);
});

test("the state of one machine is found among those of all", () => {
  const output = [
    "1,h1,metadata,provider,libvirt",
    "1,h1,state,shutoff",
    "1,h1,state-human-short,shutoff",
    "1,h11,state,running",
    "",
  ].join("\r\n");
  assert.equal(stateIn(output, "h1"), "shutoff");
  assert.equal(stateIn(output, "h11"), "running");
  assert.equal(stateIn(output, "h2"), undefined);
});
