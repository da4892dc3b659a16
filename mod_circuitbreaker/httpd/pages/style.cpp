#include "style.hpp"

namespace cb::httpd {

constinit const char kStyle[] = R"css(
:root { color-scheme: light dark;
  --page: #f4f6f8; --card: #fff; --text: #1a2028; --quiet: #5a6672; --line: #dbe1e7; --soft: #eef1f4;
  --closed: #1b7a48; --open: #c4262e; --half-open: #9a5b00; --recovering: #1560bd; --forced-open: #7b2fbf;
  --forced-closed: #4d6072; --on-state: #fff; }
@media (prefers-color-scheme: dark) { :root {
  --page: #0e1217; --card: #161b22; --text: #e3e8ee; --quiet: #9aa6b2; --line: #2a323c; --soft: #1d242d;
  --closed: #45b97c; --open: #ff8087; --half-open: #e8b04a; --recovering: #72b2ff; --forced-open: #cba0ff;
  --forced-closed: #a3b3c4; --on-state: #0e1217; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 90rem; padding: 1rem 1.25rem 3rem; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.75rem 0 .25rem; }
h3 { font-size: 1rem; margin: 0; padding: .7rem .9rem .5rem; } h4 { font-size: .85rem; margin: 0 0 .3rem; }
a { color: var(--recovering); } code, .name { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .92em; }
.name { overflow-wrap: anywhere; font-weight: 600; } .quiet { color: var(--quiet); }
.sub { display: block; color: var(--quiet); font-size: .84rem; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; }
header .quiet { font-size: .88rem; } #trouble { color: var(--open); font-weight: 600; }
.counts { list-style: none; display: flex; flex-wrap: wrap; gap: .5rem; margin: .9rem 0 0; padding: 0; }
.counts li { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .3rem .75rem; }
.counts b { font-size: 1.15rem; margin-right: .35rem; font-variant-numeric: tabular-nums; }
.notice { border-left: .3rem solid var(--closed); background: var(--card); padding: .6rem .9rem; margin: .9rem 0 0;
  border-radius: .3rem; } .notice.bad { border-color: var(--open); }
.notice ul { margin: .3rem 0 0; padding: 0; list-style: none; } .notice li { padding: .25rem 0; }
.state { display: inline-block; border-radius: .3rem; padding: .05rem .5rem; font-weight: 700; font-size: .86rem;
  white-space: nowrap; color: var(--on-state); background: var(--quiet); }
.state.closed { background: none; color: var(--closed); border: 1px solid currentColor; }
.state.open { background: var(--open); } .state.half-open { background: var(--half-open); }
.state.recovering { background: var(--recovering); } .state.forced-open { background: var(--forced-open); }
.state.forced-closed { background: var(--forced-closed); }
.tag { border: 1px solid var(--line); border-radius: .3rem; padding: 0 .35rem; font-size: .8rem; color: var(--quiet); }
.group { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; margin: .6rem 0 1rem;
  overflow: hidden; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: .78rem; font-weight: 600; color: var(--quiet); padding: .3rem .6rem; }
td { padding: .5rem .6rem; vertical-align: top; }
.group > table > * > tr > :first-child { padding-left: .9rem; }
.group > table > tbody > tr.member > td { border-top: 1px solid var(--line); }
.group > table > tbody > tr.member > td:first-child { border-left: .25rem solid transparent; }
tr.member.out > td:first-child { border-left-color: var(--open) !important; }
tr.member.recovering > td:first-child { border-left-color: var(--recovering) !important; }
.group > table { table-layout: fixed; }
.c-member { width: 17%; } .c-state { width: 25%; } .c-rate { width: 10%; } .c-number { width: 6.5%; }
.c-small { width: 7%; } .c-strip { width: 11%; }
.next { color: var(--text); }
tr.more > td { padding: 0 .9rem .6rem 1.15rem; }
svg.strip { display: block; width: 100%; height: 1.6rem; background: var(--soft); border-radius: .2rem; }
svg.bar { display: inline-block; vertical-align: middle; width: 4rem; height: .35rem; margin-left: .5rem; background: var(--soft); border-radius: .15rem; }
.tick { stroke: var(--line); vector-effect: non-scaling-stroke; }
rect.closed { fill: var(--closed); } rect.open { fill: var(--open); } rect.half-open { fill: var(--half-open); }
rect.recovering { fill: var(--recovering); } rect.forced-open { fill: var(--forced-open); }
rect.forced-closed { fill: var(--forced-closed); } rect.share { fill: var(--quiet); }
rect.share.over { fill: var(--open); } rect.limit { fill: var(--text); }
summary { cursor: pointer; color: var(--quiet); font-size: .86rem; padding: .15rem 0; }
.blocks { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem 1.75rem;
  padding: .5rem 0 .3rem; }
.blocks > div { min-width: 0; overflow-x: auto; }
.blocks th, .blocks td { padding: .12rem .9rem .12rem 0; font-size: .84rem; } .blocks td { overflow-wrap: anywhere; }
.blocks td.num, .blocks td.when { white-space: nowrap; overflow-wrap: normal; }
.blocks .whole { grid-column: 1 / -1; }
.blocks .policy { columns: 24rem; font-size: .8rem; margin: 0; padding: 0; list-style: none; overflow-wrap: anywhere; }
form { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; padding: .35rem 0; }
button { font: inherit; font-size: .88rem; min-height: 2.4rem; padding: .25rem .85rem; border-radius: .4rem;
  border: 1px solid var(--quiet); background: var(--card); color: var(--text); cursor: pointer; }
button:hover, button:focus-visible { border-color: var(--text); outline: 2px solid var(--recovering); }
button.main { background: var(--recovering); border-color: var(--recovering); color: var(--on-state); font-weight: 600; }
footer { margin-top: 1.5rem; font-size: .88rem; } footer dl { display: grid; gap: .35rem .75rem;
  grid-template-columns: max-content 1fr; } footer dd { margin: 0; }
@media (max-width: 62rem) {
  body { padding: .75rem .75rem 2.5rem; }
  .group > table > colgroup { display: none; }
  .group > table > thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .group > table, .group > table > tbody, tr.more, tr.more > td { display: block; }
  tr.member { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr));
    border-top: 1px solid var(--line); border-left: .25rem solid transparent; padding: .4rem .65rem; }
  tr.member.out { border-left-color: var(--open); } tr.member.recovering { border-left-color: var(--recovering); }
  .group > table > tbody > tr.member > td { border: 0 !important; padding: .25rem .25rem; }
  .group > table > tbody > tr.member > td.wide { grid-column: 1 / -1; }
  tr.member > td[data-label]::before { content: attr(data-label); display: block; font-size: .78rem; font-weight: 600;
    color: var(--quiet); }
  tr.more > td { padding-left: .9rem; }
  tr.member.calm { grid-template-columns: repeat(auto-fit, minmax(6.3rem, 1fr)); font-size: .88rem; }
  tr.member.calm > td:not(.wide) .sub, tr.member.calm svg.bar { display: none; }
  tr.member.calm > td[data-label]:not(.wide)::before { display: inline; content: attr(data-label) " "; }
  tr.member.calm > td.strip-cell::before { display: none; }
  tr.member.calm svg.strip { height: .8rem; }
}
)css";

// Takes the page's new content over in place: what was opened stays open, what is being read or pressed stays put.
constinit const char kScript[] = R"js(
(function () {
  "use strict";
  var every = Number(document.body.dataset.refresh) * 1000, toggled = {}, trouble = document.getElementById("trouble");
  document.addEventListener("click", function (event) {
    var summary = event.target.closest ? event.target.closest("summary") : null;
    if (summary && summary.parentNode.id) toggled[summary.parentNode.id] = !summary.parentNode.open;
  });
  document.addEventListener("submit", function (event) {
    var button = event.submitter, ask = button && button.dataset.ask;
    if (ask && !window.confirm(ask)) event.preventDefault();
  });
  function isInUse(main) {
    var selection = window.getSelection();
    return main.querySelector("button:active") || (selection && !selection.isCollapsed);
  }
  function take(text) {
    // Only the content: the style sheet of another response has another nonce.
    var begin = text.indexOf("<main>"), end = text.indexOf("</main>"), title = /<title>([^<]*)</.exec(text);
    var main = document.querySelector("main"), focused = document.activeElement && document.activeElement.id;
    if (begin < 0 || end < 0 || isInUse(main)) return;
    var fresh = new DOMParser().parseFromString(text.slice(begin, end), "text/html").querySelector("main");
    Object.keys(toggled).forEach(function (id) {
      var details = fresh.querySelector("#" + id);
      if (details) details.open = toggled[id];
    });
    main.replaceWith(document.adoptNode(fresh));
    document.title = title ? title[1] : "";
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus({ preventScroll: true });
  }
  function look() {
    if (document.hidden) return;
    fetch(location.href, { cache: "no-store", credentials: "same-origin" })
      .then(function (response) {
        return response.ok ? response.text() : Promise.reject(new Error("status " + response.status));
      })
      .then(function (text) { take(text); trouble.textContent = ""; })
      .catch(function (error) {
        if (!trouble.textContent)
          trouble.textContent = "No update since " + new Date().toLocaleTimeString() + " (" + error.message + ")";
      });
  }
  if (every > 0 && window.fetch) setInterval(look, every);
})();
)js";

}  // namespace cb::httpd
