import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { healthCheckFieldsPage, remediationFieldsPage } from "../../../../hack/crdgen/fields-page.ts";

function stored(page: string): string {
  return readFileSync(new URL(`../../../../docs/reference/${page}`, import.meta.url), "utf8");
}

describe("the pages of fields", () => {
  it("the pages of fields are what `npm run generate` makes of the schemas", () => {
    assert.equal(stored("remediation-fields.md"), remediationFieldsPage());
    assert.equal(stored("node-health-check-fields.md"), healthCheckFieldsPage());
  });

  it("the pages of fields show type, bounds, default, values and rules of a field", () => {
    const remediation = remediationFieldsPage();
    assert.match(remediation, /^- `strategy\.retryLimit` \(integer, 0 to 10, default `1`\): How many /m);
    assert.match(remediation, /^- `strategy\.timeout` \(duration, default `600s`\): /m);
    assert.match(
      remediation,
      /^- `outcome\.verdict` \(string, required\): .* One of `Failed`, `TimedOut`, `Deleted`\.$/m,
    );
    const check = healthCheckFieldsPage();
    assert.match(check, /^- spec\.selector must not be empty: it would cover every node\.$/m);
    assert.match(check, /^- `minHealthy` \(integer or string.* It must not be negative\.$/ms);
  });
});
