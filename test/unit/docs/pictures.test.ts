import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { SCENES } from "../../../hack/demo/scenes.ts";
import { renderPicture } from "../../../hack/e2e/picture.ts";

const HOW_TO = new URL("../../../docs/how-to/", import.meta.url);
const page = readFileSync(new URL("dashboard.md", HOW_TO), "utf8");
const files = readdirSync(new URL("pictures/", HOW_TO));
const textOf = (file: string): string =>
  [...readFileSync(new URL(`pictures/${file}`, HOW_TO), "utf8").matchAll(/<text [^>]*>([^<]*)<\/text>/g)]
    .map(([, text]) => text)
    .join(" ");

describe("the pictures of the dashboard", () => {
  it("the pictures of the dashboard are all in the page on it, one for each scene of the demo, and there is no other", () => {
    const shown = [...page.matchAll(/!\[[^\]]+\]\(pictures\/([\w.-]+)\)/g)].map(([, file]) => file);
    assert.deepEqual(new Set(shown), new Set(files));
    for (const index of SCENES.keys()) {
      assert.ok(
        files.some((file) => file.startsWith(`scene-${index + 1}-`)),
        `scene ${index + 1}`,
      );
    }
  });

  it("the pictures of the dashboard show its sections, and nothing of the machine that they were made on", () => {
    for (const file of files) {
      const svg = readFileSync(new URL(`pictures/${file}`, HOW_TO), "utf8");
      assert.doesNotMatch(svg, /<script|\son\w+=|href=|\/tmp\/|\/home\/|\/work\//, file);
      const text = textOf(file);
      const words =
        file === "node.svg"
          ? ["Preconditions of a fence", "Timeline of each fence"]
          : ["Could we fence?", "Last 30 days"];
      for (const word of words) assert.ok(text.includes(word), `${file}: ${word}`);
    }
  });

  it("a picture has the texts of its page, escaped, without names, ports and paths of the machine", () => {
    const line = { x: 1, y: 2, width: 30, size: 16, bold: true, fill: "rgb(0, 0, 0)" };
    const text = "a <b> & c of /tmp/x-1/kubeconfig at 127.0.0.1:4711, host_f90acbb0-e99f-4d74-a83a-56dc03a0b4f6";
    const svg = renderPicture({ width: 100, height: 50, boxes: [], lines: [{ ...line, text }] }, 'a "title"');
    assert.match(svg, />a &lt;b&gt; &amp; c of ~\/\.kube\/config at 127\.0\.0\.1:6443, ironfence-1<\/text>/);
    assert.match(svg, /<title>a &quot;title&quot;<\/title>/);
  });
});
