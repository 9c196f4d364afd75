/** The style of all pages: dark or light as the system is set, and readable on a phone. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ink: #1a1d21; --paper: #ffffff; --card: #f4f5f7; --line: #8a9099; --quiet: #555b63;
  --good: #12652f; --bad: #a8161c; --doubt: #7a4a00; --link: #0b4fa8; --bar: #3b6fb6; --running: #b3650a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e8eaed; --paper: #14171a; --card: #1f2429; --line: #7d858f; --quiet: #a9b1ba;
    --good: #7fd69a; --bad: #ff9a94; --doubt: #f1c069; --link: #8fbcff; --bar: #7aa7e6; --running: #f1b35e;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0.75rem; max-width: 64rem; background: var(--paper); color: var(--ink); font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.25rem; margin: 0 1rem 0 0; display: inline-block; }
h2 { font-size: 0.95rem; letter-spacing: 0.04em; text-transform: uppercase; border-bottom: 1px solid var(--line); margin: 1.5rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 0; }
p { margin: 0.25rem 0; }
a { color: var(--link); }
nav { display: inline-block; }
nav a { display: inline-block; padding: 0.35rem 0.5rem; }
a[aria-current] { font-weight: 700; }
a:focus-visible, summary:focus-visible, input:focus-visible, .scroll:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
main:focus { outline: none; }
code { font-family: ui-monospace, monospace; }
.skip { position: absolute; left: -999rem; }
.skip:focus { position: static; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.of, .none { color: var(--quiet); font-weight: 400; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 700; }
.doubt { color: var(--doubt); font-weight: 600; }
.big { font-size: 1.35rem; }
.node { font-weight: 700; }
.phase { font-weight: 400; }
.age { color: var(--quiet); white-space: nowrap; }
ul.cards { list-style: none; margin: 0; padding: 0; display: grid; gap: 0.5rem; }
ul.cards > li { background: var(--card); padding: 0.6rem 0.75rem; border-left: 4px solid var(--line); }
ul.block { list-style: none; margin: 0; padding: 0; content-visibility: auto; contain-intrinsic-size: auto 100rem; }
ul.rest { min-height: 100rem; contain-intrinsic-size: auto 100rem; }
ul.block > li { padding: 0.25rem 0; border-bottom: 1px solid var(--card); }
ol.steps { list-style: none; display: flex; flex-wrap: wrap; gap: 0.25rem; margin: 0.4rem 0; padding: 0; }
ol.steps li { padding: 0.1rem 0.6rem; border: 1px solid var(--line); border-radius: 1rem; color: var(--quiet); }
ol.steps li.done { color: var(--good); border-color: var(--good); }
ol.steps li.done::before { content: "✓ " / ""; }
ol.steps li.now { color: var(--paper); background: var(--ink); border-color: var(--ink); font-weight: 700; }
ol.log, ul.log { margin: 0.4rem 0; padding-left: 1.4rem; }
.plug.safe .yes { display: none; }
.live .plug.safe .yes { display: inline; }
.live .plug.safe .no { display: none; }
.plug .yes { color: var(--good); }
.plug .no { color: var(--bad); }
#news:not(:empty) { color: var(--paper); background: var(--bad); padding: 0.5rem 0.75rem; font-weight: 700; position: sticky; top: 0; z-index: 1; }
dl { display: grid; grid-template-columns: minmax(8rem, 14rem) 1fr; gap: 0.15rem 0.75rem; margin: 0.4rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; }
.scroll { overflow-x: auto; margin: 0.4rem 0; }
svg { width: 100%; min-width: 36rem; font: 13px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .took { fill: var(--quiet); }
svg line { stroke: var(--line); }
svg .bar { fill: var(--bar); }
svg .running { fill: var(--running); }
input { font: inherit; padding: 0.4rem 0.5rem; color: inherit; background: var(--card); border: 1px solid var(--line); }
button { font: inherit; padding: 0.4rem 1rem; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.4rem; } }
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
`;
