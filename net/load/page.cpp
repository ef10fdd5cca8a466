#include "net/load/page.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <utility>

namespace weir::load {
namespace {

namespace json = boost::json;

constexpr std::string_view page = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>weir load</title>
<style>
:root { color-scheme: light dark; --ground:#f5f4ef; --surface:#fffefb; --ink:#1c2427; --muted:#626d70; --line:#e2dfd5; --accent:#0b6e75; --warm:#b3480c; }
@media (prefers-color-scheme: dark) { :root { --ground:#0f1416; --surface:#161d20; --ink:#e4e9ea; --muted:#95a2a6; --line:#2b363a; --accent:#57bfc3; --warm:#f0a36b; } }
body { margin:0; background:var(--ground); color:var(--ink); font:15px/1.5 system-ui,sans-serif; overflow-wrap:anywhere; }
main { max-width:1040px; margin:0 auto; padding:28px 20px 60px; }
h1 { font-size:22px; margin:0; } h2 { font-size:17px; margin:36px 0 2px; }
p { margin:4px 0 12px; color:var(--muted); max-width:76ch; }
.verdict { border-left:4px solid var(--accent); padding:8px 14px; background:var(--surface); margin:16px 0; color:var(--ink); }
.verdict.bad { border-color:var(--warm); }
.tiles { display:grid; grid-template-columns:repeat(auto-fit,minmax(150px,1fr)); gap:10px; margin:16px 0; }
.tile { background:var(--surface); border:1px solid var(--line); border-radius:8px; padding:10px 14px; }
.tile b { display:block; font-size:21px; font-variant-numeric:tabular-nums; } .tile span { color:var(--muted); font-size:13px; }
.scroll { overflow-x:auto; overflow-wrap:normal; } .scroll svg { min-width:640px; } table { border-collapse:collapse; width:100%; background:var(--surface); font-size:13px; font-variant-numeric:tabular-nums; }
th,td { padding:5px 9px; border-bottom:1px solid var(--line); text-align:right; } th:first-child,td:first-child,td.t,th.t { text-align:left; }
td.t { color:var(--muted); } th { color:var(--muted); font-weight:500; }
svg { width:100%; height:auto; background:var(--surface); border:1px solid var(--line); border-radius:8px; }
svg text { fill:var(--muted); font:11px system-ui,sans-serif; } .grid { stroke:var(--line); } .l1 { stroke:var(--accent); } .l2 { stroke:var(--warm); }
.l3 { stroke:var(--muted); } path { fill:none; stroke-width:1.6; } .tok { fill:var(--accent); } .many { fill:var(--warm); }
.pair { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr)); gap:14px; } .key i { display:inline-block; width:14px; height:3px; margin:0 5px 3px 12px; }
@media (max-width:600px) { main { padding:16px 12px 40px; } .tiles { grid-template-columns:1fr 1fr; } td.t { min-width:220px; } }
</style></head><body><main id="main"></main>
<script type="application/json" id="data">@DATA@</script>
<script>
const d = JSON.parse(document.getElementById("data").textContent), f = d.figures, main = document.getElementById("main");
const esc = s => String(s).replace(/[&<>"]/g, c => "&#" + c.charCodeAt(0) + ";");
const num = v => v == null ? "–" : Number.isInteger(v) ? v.toLocaleString("en") : Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en") : Math.abs(v) >= 10 ? v.toFixed(1) : Math.abs(v) >= .01 ? v.toFixed(3) : v.toPrecision(2);
const add = html => main.insertAdjacentHTML("beforeend", html);
const W = 500, H = 230, L = 48, B = 26, T = 10, R = 12;
const ticks = (lo, hi, n) => { const raw = (hi - lo) / n || 1, p = 10 ** Math.floor(Math.log10(raw)); const step = [1, 2, 5, 10].find(m => m * p >= raw) * p; const out = []; for (let v = Math.ceil(lo / step - 1e-9) * step; v <= hi + step * 1e-9; v += step) out.push(v); return out; };
const frame = (w, h, x0, x1, y0, y1, xl, yl) => { let s = ""; const X = v => L + (v - x0) / (x1 - x0 || 1) * (w - L - R), Y = v => h - B - (v - y0) / (y1 - y0 || 1) * (h - B - T);
  for (const v of ticks(x0, x1, 6)) s += `<line class="grid" x1="${X(v)}" x2="${X(v)}" y1="${T}" y2="${h - B}"/><text x="${X(v)}" y="${h - 11}" text-anchor="middle">${+v.toPrecision(4)}</text>`;
  for (const v of ticks(y0, y1, 4)) s += `<line class="grid" x1="${L}" x2="${w - R}" y1="${Y(v)}" y2="${Y(v)}"/><text x="${L - 5}" y="${Y(v) + 4}" text-anchor="end">${+v.toPrecision(4)}</text>`;
  return { s: s + `<text x="${w - R}" y="${h - 1}" text-anchor="end">${xl}</text><text x="4" y="${T + 2}">${yl}</text>`, X, Y }; };
const path = (cls, pts, X, Y) => pts.length ? `<path class="${cls}" d="M${pts.map(p => X(p[0]).toFixed(1) + " " + Y(p[1]).toFixed(1)).join("L")}"/>` : "";
const svg = (w, h, inside, name) => `<svg viewBox="0 0 ${w} ${h}" role="img" aria-label="${name}">${inside}</svg>`;

add(`<h1>${esc(d.url)}</h1><p>${esc(d.protocol)}, measured by weir load; ${Object.entries(d.options).map(([k, v]) => esc(k.replace(/_/g, " ") + " " + v)).join(", ")}.</p>`);
if (d.bottleneck) add(`<div class="verdict bad"><b>Not a measurement of the server.</b> The harness could not keep up: ${esc(d.bottleneck)}.</div>`);
const found = Object.entries(d.found);
add(found.length ? `<div class="verdict bad"><b>Found:</b> ${found.map(([k, n]) => esc(k) + " in " + n + (n == 1 ? " stream" : " streams")).join(", ")}.</div>` : `<div class="verdict"><b>Found: nothing.</b> No token lost or repeated, no stall, no burst, no error.</div>`);
for (const c of d.conditions) add(`<div class="verdict ${c.holds ? "" : "bad"}">${c.holds ? "Holds" : "<b>Broken</b>"}: ${esc(c.condition)} (measured ${num(c.value)})</div>`);
const tick = v => String(+v.toPrecision(4)), ms = v => v == null ? "–" : num(v) + " ms";
const tile = (v, t) => `<div class="tile"><b>${v}</b><span>${t}</span></div>`;
add(`<div class="tiles">${tile(num(f.output_throughput), "tokens a second")}${tile(ms(f.ttft_ms.p50), "to the first token, median")}${tile(num(f.itl_ms.p50) + " / " + num(f.itl_ms.p99) + " ms", "between frames, median / 99th")}${tile(num(f.gap_max_ms.max) + " ms", "longest gap of any stream")}${f.added_jitter_ms.count ? tile(num(f.added_jitter_ms.p99) + " ms", "added by delivery, 99th") : ""}${tile(num(100 * f.coalesced_frac.all) + " %", "of tokens came in company")}${f.shown_gap_cv.count ? tile(num(f.gap_cv.p50) + " → " + num(f.shown_gap_cv.p50), "spread of gaps, median: at the socket, and where the client paces, which costs " + num(f.shown_delay_ms.mean) + " ms on average, " + num(f.shown_delay_ms.max) + " ms at most") : ""}</div>`);

add(`<h2>How evenly tokens came</h2><p>Each curve: what share of the values (upwards) is at most so large (to the right). A metronome is one vertical step. The tail above 99 % is cut off; the table has it.</p><div class="pair">` +
  d.cdfs.map(c => { const hi = c.points[c.points.length - 1][0], lo = Math.min(c.points[0][0], hi * .5); const g = frame(W, H, hi > lo ? lo : 0, hi || 1, 0, 100, c.unit, "%"); return `<div><p style="margin:0">${esc(c.name)}: ${esc(c.what)}</p>${svg(W, H, g.s + path("l1", c.points.map(p => [p[0], p[1] * 100]), g.X, g.Y), c.name)}</div>`; }).join("") + `</div>`);

const s = d.seconds; if (s.length) { const w = 1000, top = Math.max(...s.map(x => x.gap_max_ms)) * 1.05 || 1, g = frame(w, 240, 0, Math.max(s.length - 1, 1), 0, top, "s", "ms");
  add(`<h2>Gaps over time</h2><p>Of each second: the median gap between two frames of a stream, the 99th percentile, and the longest. A server that evens out keeps the three together; a spike of the longest alone is one stream that waited.</p><p class="key"><i style="background:var(--accent)"></i>median<i style="background:var(--warm)"></i>longest<i style="background:var(--muted)"></i>99th percentile</p>` +
  `<div class="scroll">` + svg(w, 240, g.s + path("l2", s.map((x, i) => [i, x.gap_max_ms]), g.X, g.Y) + path("l3", s.map((x, i) => [i, x.gap_p99_ms]), g.X, g.Y) + path("l1", s.map((x, i) => [i, x.gap_p50_ms]), g.X, g.Y), "gaps over time") + `</div>`); }

if (d.raster.length) { const w = 1000, row = 13, h = d.raster.length * row + B + T, begin = Math.min(...d.raster.map(r => r.frames[0][0])), all = Math.max(...d.raster.map(r => r.frames[r.frames.length - 1][0])), end = Math.min(all, begin + 3000);
  const X = t => L + (t - begin) / (end - begin || 1) * (w - L - R); let t = "";
  for (const v of ticks(0, (end - begin) / 1000, 8)) t += `<line class="grid" x1="${X(begin + v * 1000)}" x2="${X(begin + v * 1000)}" y1="${T}" y2="${h - B}"/><text x="${X(begin + v * 1000)}" y="${h - 10}" text-anchor="middle">${tick(v)} s</text>`;
  d.raster.forEach((r, i) => { const y = T + i * row; t += `<text x="${L - 6}" y="${y + 10}" text-anchor="end">${r.stream}</text>`;
    for (const [at, n] of r.frames) if (at <= end) t += `<rect class="${n > 1 ? "many" : "tok"}" x="${X(at).toFixed(1)}" y="${y + 2}" width="1.4" height="${row - 4}"/>`; });
  add(`<h2>Every token of some streams</h2><p>A line is a stream, by the number of its request; a stroke is a frame when it came (the first three seconds). Even strokes are an even stream, a gap in one line is that stream waiting, a gap in all lines is the server. Frames of several tokens are in the other colour.</p><div class="scroll">` + svg(w, h, t, "raster of token arrivals") + `</div>`); }

add(`<h2>All figures</h2><div class="scroll"><table><tr><th>figure</th>${["p50", "p90", "p95", "p99", "p99.9", "max", "count"].map(h => `<th>${h}</th>`).join("")}<th class="t">what it is</th></tr>` +
  d.explain.filter(e => typeof f[e[0]] == "object" && f[e[0]].count).map(([n, what]) => `<tr><td>${n}</td>${["p50", "p90", "p95", "p99", "p99.9", "max", "count"].map(q => `<td>${num(f[n][q])}</td>`).join("")}<td class="t">${esc(what)}</td></tr>`).join("") + `</table></div>`);
add(`<div class="scroll"><table style="margin-top:14px">` + d.explain.filter(e => typeof f[e[0]] == "number" || f[e[0]].all != null).map(([n, what]) => `<tr><td>${n}</td><td>${num(typeof f[n] == "number" ? f[n] : f[n].all)}</td><td class="t">${esc(what)}</td></tr>`).join("") + `</table></div>`);
if (d.folded.length) add(`<h2>What was found</h2><p>Findings that differ in their numbers alone are one line, with the number of streams that have it.</p><div class="scroll"><table><tr><th>what</th><th>streams</th><th>first</th><th>at</th><th class="t">as in the first</th></tr>` + d.folded.slice(0, 40).map(x => `<tr><td>${esc(x.name)}</td><td>${x.streams}</td><td>${x.stream}</td><td>${num(x.at_ms / 1000)} s</td><td class="t">${esc(x.what)}</td></tr>`).join("") + `</table></div>`);
</script></body></html>
)html";

// Pairs (value, share of all values that do not exceed it), up to the 99th percentile.
json::array curve(const histogram& h) {
  json::array points;
  for (int i = 0; i <= 99; ++i) points.push_back(json::array{h.quantile(i / 100.0), i / 100.0});
  return points;
}

// What a finding says, with each number replaced, so that equal faults of many streams are equal.
std::string without_numbers(std::string_view what) {
  std::string out;
  for (const char c : what) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    if (digit && !out.ends_with('#')) out += '#';
  }
  return out;
}

// Findings of one name that differ in their numbers alone, as one object with the first of them. The report
// keeps the first findings only; a name with one kind of finding has the number of all.
json::array fold(const report& r) {
  std::map<std::pair<std::string, std::string>, std::size_t> known;  // → index
  std::map<std::string, std::size_t> kinds;                          // of a name
  std::vector<std::pair<const finding*, std::uint64_t>> folded;
  for (const finding& f : r.all.findings()) {
    const auto [at, first] = known.try_emplace({f.name, without_numbers(f.what)}, folded.size());
    if (first) folded.emplace_back(&f, 0);
    if (first) ++kinds[f.name];
    ++folded[at->second].second;
  }
  json::array out;
  for (const auto& [f, kept] : folded) {
    const auto n = kinds[f->name] == 1 ? r.all.found().at(f->name) : kept;
    out.push_back(json::object{{"name", f->name},
                               {"streams", n},
                               {"stream", f->stream},
                               {"at_ms", f->at_ms},
                               {"what", f->what}});
  }
  return out;
}

}  // namespace

std::string as_page(const report& r) {
  json::object data = as_json(r);
  json::array cdfs, explain, raster;
  for (const figure f : {figure::ttft_ms, figure::itl_ms, figure::tpot_ms, figure::added_jitter_ms,
                         figure::gap_cv, figure::shown_gap_cv, figure::gap_max_ms}) {
    const histogram& h = r.all.of(f);
    if (h.count() == 0) continue;
    const auto& e = entry(f);
    cdfs.push_back(json::object{{"name", json::string(e.name.data(), e.name.size())},
                                {"what", json::string(e.what.data(), e.what.size())},
                                {"unit", e.name.ends_with("_ms") ? "ms" : ""},
                                {"points", curve(h)}});
  }
  for (const auto& e : figure_table)
    explain.push_back(
        json::array{json::string(e.name.data(), e.name.size()), json::string(e.what.data(), e.what.size())});
  for (const auto& l : r.all.raster()) {
    json::array frames;
    for (const frame& f : l.frames) frames.push_back(json::array{static_cast<double>(f.at) / 1000, f.n});
    raster.push_back(json::object{{"stream", l.stream}, {"frames", std::move(frames)}});
  }
  data["cdfs"] = std::move(cdfs);
  data["explain"] = std::move(explain);
  data["raster"] = std::move(raster);
  data["folded"] = fold(r);
  std::string text = json::serialize(data);
  for (std::size_t at = 0; (at = text.find('<', at)) != text.npos; at += 6)
    text.replace(at, 1, "\\u003c");  // so that the data cannot contain an HTML tag
  std::string out(page);
  const auto at = out.find("@DATA@");
  return out.replace(at, 6, text);
}

}  // namespace weir::load
