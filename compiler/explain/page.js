/* What the page does beyond its text: one kernel at a time, lines that light up together, and the pictures, which are drawn
 * from the JSON report.  Nothing is asked of anywhere else; all text that is put in is put in as text. */
"use strict";
(() => {
const $ = id => document.getElementById(id);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const report = JSON.parse($("report").textContent), extra = JSON.parse($("extra").textContent);
const counters = JSON.parse($("counters").textContent);
const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many || one + "s"}`;
const placeOf = (file, line) => { const f = extra.files.indexOf(file); return f < 0 ? null : `f${f}-${line}`; };

/* make("div", {class: "x"}, "text", child..) */
const SVG = "http://www.w3.org/2000/svg";
function fill(e, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) if (value !== null) e.setAttribute(name, value);
	e.append(...children.filter(c => c !== null));
	return e;
}
const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const canvas = (width, height, label, ...children) => draw("svg", {viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": label}, ...children);
const write = (x, y, text, more) => draw("text", {x, y, "font-size": 11, ...more}, text);
function figure(title, text, ...content) {
	return make("figure", {}, make("figcaption", {}, make("b", {}, title), text ? ` ${text}` : ""), ...content);
}

/* ---- who holds what: a layout is a linear map of bits ---- */

/* For each bit of an element's number, which bit of register, lane or warp sets it. */
function inverse(layout) {
	const bits = [];
	let copies = 1;
	for (const kind of ["registers", "lanes", "warps"])
		layout[kind].forEach((column, i) => {
			if (column === 0) copies *= 2;
			else bits[Math.log2(column)] = {kind, i};
		});
	return {bits, copies, warps: 1 << layout.warps.length};
}
function ownerOf(map, element) {
	const owner = {registers: 0, lanes: 0, warps: 0};
	map.bits.forEach((b, i) => { if (element >> i & 1) owner[b.kind] |= 1 << b.i; });
	return owner;
}
const apply = (columns, index) => columns.reduce((sum, column, i) => index >> i & 1 ? sum ^ column : sum, 0);
const elementOf = (layout, register, lane, warp) => apply(layout.registers, register) ^ apply(layout.lanes, lane) ^ apply(layout.warps, warp);
const colourOf = (warp, warps, lane) => `hsl(${Math.round(215 + 360 * warp / Math.max(warps, 1)) % 360} 55% calc(var(--dark) + (var(--light) - var(--dark)) * ${(lane / 31).toFixed(3)}))`;
function coordinates(shape, element) {
	const at = [];
	for (let d = shape.length - 1; d >= 0; d--) { at[d] = element % shape[d]; element = Math.floor(element / shape[d]); }
	return at;
}

function ownersPicture(row, layout, title) {
	const map = inverse(layout), shape = row.shape, elements = shape.reduce((a, b) => a * b, 1);
	const flat = shape.length === 1;
	const columns = Math.min(flat ? elements : shape[shape.length - 1], 64);
	const stride = flat ? columns : shape[shape.length - 1];
	const rows = Math.min(flat ? Math.ceil(elements / columns) : shape[shape.length - 2], flat ? 32 : 64);
	const w = 8, h = rows <= 16 ? 16 : 8, left = 30, top = 14;
	const threads = new Map(), cells = [];
	for (let y = 0; y < rows; y++)
		for (let x = 0; x < columns;) {
			const first = x, o = ownerOf(map, y * stride + x), thread = o.warps * 32 + o.lanes;
			for (x++; x < columns; x++) {
				const next = ownerOf(map, y * stride + x);
				if (next.warps * 32 + next.lanes !== thread) break;
			}
			const cell = draw("rect", {x: left + first * w, y: top + y * h, width: (x - first) * w - .6, height: h - .6, style: `fill: ${colourOf(o.warps, map.warps, o.lanes)}`, "data-t": thread});
			cells.push(cell);
			if ((x - first) * w >= 15 && h >= 16) cells.push(write(left + (first + x) * w / 2, top + y * h + 11.5, `${o.lanes}`, {"text-anchor": "middle", "font-size": 9, "pointer-events": "none"}));
			if (!threads.has(thread)) threads.set(thread, []);
			threads.get(thread).push(cell);
		}
	const label = `${title}: which thread holds which element of ${row.type}`;
	const svg = canvas(left + columns * w + 4, top + rows * h + 4, label,
		write(left, 10, flat ? "element" : "column 0", {class: "dim", "font-size": 9}),
		write(left + columns * w, 10, `${columns - 1}`, {class: "dim", "font-size": 9, "text-anchor": "end"}), ...cells);
	for (let y = 0; y < rows; y += h >= 16 ? 1 : 8)
		svg.append(write(left - 4, top + y * h + (h >= 16 ? 11.5 : 8), `${flat ? y * stride : y}`, {class: "dim", "text-anchor": "end", "font-size": 9}));
	const told = make("div", {class: "told", "aria-live": "polite"}, "point at an element, or choose a thread");
	const last = map.warps * 32 - 1;
	const slider = make("input", {type: "range", min: 0, max: last, value: 0, "aria-label": `thread of ${row.type}`});
	let hit = [];
	function show(thread) {
		for (const c of hit) c.removeAttribute("class");
		hit = threads.get(thread) || [];
		for (const c of hit) { c.setAttribute("class", "hit"); c.parentNode.append(c); }
		for (const t of all("text", svg)) svg.append(t);
		const registers = 1 << layout.registers.length;
		const own = [0, 1, 2].slice(0, Math.min(registers, 3)).map(r => `(${coordinates(shape, elementOf(layout, r, thread & 31, thread >> 5)).join(", ")})`);
		told.textContent = `warp ${thread >> 5}, lane ${thread & 31}: ${plural(registers, "element")}: ${own.join(" ")}${registers > 3 ? " …" : ""}`;
		slider.value = thread;
	}
	svg.addEventListener("pointermove", e => { if (e.target.dataset.t) show(+e.target.dataset.t); });
	slider.addEventListener("input", () => show(+slider.value));
	const cut = rows * columns < elements ? ` The first ${flat ? rows * columns : `${rows} × ${columns}`} of ${elements.toLocaleString("en")} elements.` : "";
	const repeated = map.copies > 1 ? ` Each element is held by ${map.copies} threads; the lowest is shown.` : "";
	return figure(title, `A colour is a warp, a shade a lane.${cut}${repeated}`, make("div", {class: "box"}, svg), told,
		make("label", {class: "control"}, "thread", slider));
}

/* ---- which bytes a warp touches ---- */

function bytesPicture(row) {
	const layout = row.layout, shape = row.shape, size = row.element_bytes, d = row.wide_in_dimension;
	const inside = shape.slice(d + 1).reduce((a, b) => a * b, 1), width = row.bytes_per_access / size;
	/* register bits that step within an access, and the others, which number a thread's accesses */
	const within = layout.registers.map(c => c >= inside && c < inside * width);
	const steps = [];
	within.forEach((w, i) => { if (!w) steps.push(i); });
	const group = Math.min(row.contiguous_elements, shape[d]);
	function touched(access) {
		let register = 0;
		steps.forEach((bit, i) => { if (access >> i & 1) register |= 1 << bit; });
		const runs = new Map();
		for (let lane = 0; lane < 32; lane++) {
			const at = coordinates(shape, elementOf(layout, register, lane, 0));
			const offset = at[d] % group * size;
			at[d] -= at[d] % group;
			const key = at.join(", ");
			if (!runs.has(key)) runs.set(key, {key, pieces: [], first: Infinity, last: 0});
			const run = runs.get(key);
			run.pieces.push({lane, offset});
			run.first = Math.min(run.first, offset);
			run.last = Math.max(run.last, offset + row.bytes_per_access);
		}
		return [...runs.values()];
	}
	const accesses = 1 << steps.length;
	const box = make("div", {class: "box"}), text = make("div", {class: "told", "aria-live": "polite"});
	function show(access) {
		const runs = touched(access);
		let sectors = 0, longest = 32;
		for (const r of runs) {
			r.first -= r.first % 32;
			longest = Math.max(longest, Math.ceil((r.last - r.first) / 32) * 32);
			sectors += new Set(r.pieces.flatMap(p => { const s = []; for (let b = p.offset; b < p.offset + row.bytes_per_access; b += Math.min(32, row.bytes_per_access)) s.push(b >> 5); return s; })).size;
		}
		const width = 560, many = longest <= 64 && runs.length > 4, across = many ? 4 : 1, strip = width / across - (many ? 10 : 0), scale = strip / longest, high = many ? 14 : 20, gap = many ? 8 : 18;
		const parts = [];
		runs.slice(0, 32).forEach((r, i) => {
			const x0 = i % across * (width / across) + 1, y0 = Math.floor(i / across) * (high + gap) + gap - 4;
			if (!many) parts.push(write(x0, y0 - 4, `at (${r.key}), bytes ${r.first} to ${r.last - 1}`, {class: "dim", "font-size": 9}));
			for (const p of r.pieces)
				parts.push(draw("rect", {x: x0 + (p.offset - r.first) * scale, y: y0, width: Math.max(row.bytes_per_access * scale - .5, 1), height: high, style: `fill: ${colourOf(0, 1, p.lane)}`},
					draw("title", {}, `lane ${p.lane}`)));
			for (let b = 0; b <= longest; b += 32)
				parts.push(draw("line", {x1: x0 + b * scale, x2: x0 + b * scale, y1: y0 - 2, y2: y0 + high + 2, stroke: "var(--dim)", "stroke-width": b % 128 ? .5 : 1.2}));
		});
		const height = Math.ceil(Math.min(runs.length, 32) / across) * (high + gap) + 4;
		box.replaceChildren(canvas(width + 2, height, "bytes that a warp touches", ...parts));
		const lanes = new Set(runs.flatMap(r => r.pieces.map(p => `${r.key}/${p.offset}`))).size, bytes = lanes * row.bytes_per_access;
		text.textContent = `access ${access + 1} of ${accesses}: ${bytes} bytes in ${plural(runs.length, "run")}, ${plural(sectors, "sector")} of 32 bytes (${Math.round(100 * bytes / (32 * sectors))}% used)`;
	}
	show(0);
	const slider = make("input", {type: "range", min: 0, max: accesses - 1, value: 0, "aria-label": "access of the thread"});
	slider.addEventListener("input", () => show(+slider.value));
	return figure("Bytes that warp 0 touches", "A shade is a lane, thin lines are sectors of 32 bytes, as memory counts them if a run starts at one.", box, text,
		accesses > 1 ? make("label", {class: "control"}, "access", slider) : null);
}

/* ---- the stages of a multibuffer ---- */

function multibufferPicture(rows, flies) {
	const S = rows[0].stages, late = flies && S > 1 ? 1 : 0, tiles = 2 * S + 2, last = tiles + late;
	const unit = Math.min(56, 520 / (last + 1)), left = 52, high = 26, top = 20, x = t => left + (t + 1) * unit;
	const parts = [];
	for (let t = 0; t <= last; t++) {
		parts.push(draw("line", {x1: x(t), x2: x(t), y1: top - 4, y2: top + S * high, class: "axis"}));
		if (t < last) parts.push(write(x(t) + unit / 2, 11, `${t}`, {class: "dim", "font-size": 9, "text-anchor": "middle"}));
	}
	parts.push(write(left, 11, "before", {class: "dim", "font-size": 9}));
	for (let s = 0; s < S; s++) parts.push(write(0, top + s * high + 15, `stage ${s}`, {class: "dim", "font-size": 10}));
	const block = (from, to, s, colour, text, title) => {
		const a = Math.max(x(from), left), b = Math.max(x(to), a + 3);
		parts.push(draw("rect", {x: a + .5, y: top + s * high + 2, width: b - a - 1, height: high - 6, rx: 3, style: `fill: var(${colour})`}, draw("title", {}, title)));
		if (b - a > 22) parts.push(write((a + b) / 2, top + s * high + 15, text, {"text-anchor": "middle", "font-size": 10, "pointer-events": "none"}));
	};
	for (let t = 0; t < tiles; t++) {
		const s = t % S;
		block(t - (S - 1) + late, t, s, "--fill", `${t}`, `copies of iteration ${t} on their way into stage ${s}`);
		block(t, t + 1 + late, s, "--read", `${t}`, `iteration ${t} reads stage ${s}`);
	}
	const r = rows[0], bulk = r.kind === "tensor copy";
	const names = rows.map(x => `${x.name || ""} ${x.type}`).join(", ");
	const fills = bulk ? r.producer ? "one thread of a producer warp, by tensor copies" : "one thread, by tensor copies" : "all threads, each its part, by cp.async";
	const waits = bulk ? "readers wait for the stage's mbarrier, which counts the bytes" : "readers wait for their own copies, then at a barrier of the CTA";
	const frees = r.producer ? "its readers, by an mbarrier, for which the producer waits" : `a barrier of the CTA${late ? ", once the product that reads it is done, an iteration later" : ""}`;
	const item = (colour, name, text) => make("span", {}, make("i", {style: `background: var(${colour})`}), make("b", {}, name), ` ${text}`);
	return make("div", {class: "card"}, figure(`Multibuffer of ${plural(S, "stage")}:`, `${names}${r.loop_line ? `, in the loop at line ${r.loop_line}` : ""}. Numbers are iterations; a copy may start as early as its bar does.`,
		make("div", {class: "box"}, canvas(x(last) + 4, top + S * high + 4, `multibuffer of ${S} stages`, ...parts)),
		make("div", {class: "legend"}, item("--fill", "filled", `by ${fills}; ${waits}`), item("--read", "read", `by ${r.read_by || (bulk ? "products" : "loads")}; freed by ${frees}`))));
}

/* ---- registers and occupancy ---- */

function registersPicture(k, live) {
	const lines = k.live_registers.map(l => ({...l, place: placeOf(l.file, l.line)}));
	const order = p => { const m = /f(\d+)-(\d+)/.exec(p || ""); return m ? m[1] * 1e6 + +m[2] : 0; };
	lines.sort((a, b) => order(a.place) - order(b.place));
	const shown = lines.slice(0, 60), most = Math.max(32, ...lines.map(l => l.registers), ...live.values());
	const base = file => file === report.file ? "" : file.replace(/.*\//, "") + ":", left = 20 + 7 * Math.max(...shown.map(l => `${base(l.file)}${l.line}`.length));
	const width = 400 + left, high = 15, scale = (width - left - 60) / most, parts = [];
	shown.forEach((l, i) => {
		const y = i * high, made = live.get(l.place);
		parts.push(draw("a", {href: l.place ? `#${l.place}` : null}, write(left - 8, y + 11, `${base(l.file)}${l.line}`, {"text-anchor": "end", style: "fill: var(--accent)"})));
		parts.push(draw("rect", {x: left, y: y + 2, width: l.registers * scale, height: made ? 5 : 10, style: "fill: var(--bar)"},
			draw("title", {}, l.values.map(v => `${v.name || "a value"} ${v.type} in ${v.registers}`).join("\n"))));
		if (made) parts.push(draw("rect", {x: left, y: y + 8, width: made * scale, height: 5, style: "fill: var(--bar-2)"}));
		parts.push(write(left + Math.max(l.registers, made || 0) * scale + 5, y + 11, made ? `${l.registers}, ${made}` : `${l.registers}`, {class: "dim", "font-size": 10}));
	});
	const largest = k.live_registers[0];
	const what = largest ? largest.values.map(v => `${v.name || "a value"} ${v.type} in ${v.registers}`).join(", ") : "";
	const item = (colour, text) => make("span", {}, make("i", {style: `background: var(${colour})`}), text);
	return make("div", {class: "card"}, figure("Registers by line", largest ? `The most hold values at line ${largest.line}: ${what}.` : "", make("div", {class: "box"}, canvas(width, shown.length * high + 2, "registers by line", ...parts)),
		make("div", {class: "legend"}, item("--bar", "that hold values, estimated from layouts and lifetimes"), live.size ? item("--bar-2", "live in the machine code, the most of a line's instructions") : null)));
}

function occupancyPicture(k, curves) {
	const total = k.most_warps_per_sm, own = k.num_warps + k.producer_warps, cell = 15, parts = [];
	for (let w = 0; w < total; w++) {
		const program = Math.floor(w / own), used = program < k.programs_per_sm;
		parts.push(draw("rect", {x: w % 16 * cell + 1, y: Math.floor(w / 16) * cell + 1, width: cell - 2, height: cell - 2, rx: 2,
			style: used ? `fill: ${colourOf(program, Math.max(k.programs_per_sm, 1), w % own >= k.num_warps ? 31 : 8)}` : "fill: var(--soft); stroke: var(--line)"},
			draw("title", {}, used ? `warp ${w % own} of program ${program}` : "free")));
	}
	const height = Math.ceil(total / 16) * cell;
	const limit = k.limited_by ? `; limited by ${k.limited_by}` : "";
	const figures = [figure("An SM:", `${plural(k.programs_per_sm, "program")} of ${plural(own, "warp")}, ${k.warps_per_sm} of ${total} warps${limit}. A square is a warp, a colour a program.`,
		make("div", {class: "box"}, canvas(16 * cell, height, "warps of an SM", ...parts)))];
	const step = (title, points, now, unit, name) => {
		const width = 250, high = 90, most = Math.max(1, ...points.map(p => p[1])), first = points[0][0], last = points[points.length - 1][0];
		const x = v => 22 + (v - first) / (last - first) * (width - 30), y = v => high - 16 - v / most * (high - 30);
		let path = `M${x(first)} ${y(points[0][1])}`;
		for (const [v, n] of points.slice(1)) path += `H${x(v)}V${y(n)}`;
		const at = points.reduce((best, p) => p[0] <= Math.max(now, first) ? p : best, points[0]);
		return figure(title, "", make("div", {class: "box"}, canvas(width, high, `${title}: programs an SM`,
			draw("line", {x1: 22, x2: width, y1: y(0), y2: y(0), class: "axis"}),
			draw("path", {d: path, fill: "none", stroke: "var(--bar)", "stroke-width": 2}),
			draw("line", {x1: x(now), x2: x(now), y1: 8, y2: y(0), stroke: "var(--on-edge)", "stroke-width": 1.5, "stroke-dasharray": "3 2"}),
			write(18, y(most) + 4, `${most}`, {class: "dim", "font-size": 9, "text-anchor": "end"}), write(18, y(0) + 3, "0", {class: "dim", "font-size": 9, "text-anchor": "end"}),
			write(22, high - 3, `${name(first)}`, {class: "dim", "font-size": 9}), write(width, high - 3, `${name(last)} ${unit}`, {class: "dim", "font-size": 9, "text-anchor": "end"}),
			write(x(now) + (x(now) > width / 2 ? -4 : 4), 14, `now ${name(now)}`, {"font-size": 9, "text-anchor": x(now) > width / 2 ? "end" : "start"}))));
	};
	if (curves.by_registers) figures.push(make("div", {class: "pair"},
		step("Programs an SM by registers of a thread", curves.by_registers, k.registers, "", v => v),
		step("and by shared memory of a program", curves.by_shared, k.shared_bytes, "KiB", v => Math.round(v / 1024))));
	return make("div", {class: "card"}, ...figures);
}

/* ---- a kernel's facts and pictures ---- */

const kinds = ["load", "store", "atomic", "conversion", "reduction", "barrier", "copy ahead", "tensor copy", "product", "exchange", "liberty", "mask", "maximum", "order"];
function decorate(article, row) {
	const head = article.querySelector("h5"), kind = row.kind, rest = head.textContent.slice(kind.length).trim();
	head.replaceChildren(make("span", {class: "kind"}, kind), rest ? make("code", {}, rest) : "");
	if (!row.layout) return;
	const box = make("div", {class: "pictures"});
	const details = make("details", {}, make("summary", {}, "pictures"), box);
	details.addEventListener("toggle", () => {
		if (!details.open || box.firstChild) return;
		if (row.from_layout) box.append(ownersPicture(row, row.from_layout, "Before"), ownersPicture(row, row.layout, "After"));
		else box.append(ownersPicture(row, row.layout, kind === "copy ahead" ? "Who copies what" : "Who holds what"));
		if (row.contiguous_elements && row.contiguous_bytes_per_warp) box.append(bytesPicture(row));
	});
	article.append(details);
	return details;
}

function summary(k, i) {
	const section = make("section", {class: "summary", "data-k": i, id: `k${i}-pictures`}, make("h3", {}, "The kernel as a whole")), grid = make("div", {class: "grid"});
	const live = new Map();
	for (const p of all(`[data-k="${i}"][data-form="sass"] p[data-live][data-l]`)) live.set(p.dataset.l, Math.max(live.get(p.dataset.l) || 0, +p.dataset.live));
	const multibuffers = new Map();
	for (const row of k.rows) if (row.stages > 1) {
		const key = `${row.kind} ${row.stages} ${row.producer} ${row.loop_line}`;
		if (!multibuffers.has(key)) multibuffers.set(key, []);
		multibuffers.get(key).push(row);
	}
	const products = k.rows.filter(r => r.kind === "product"), flies = products.length > 0 && products.every(r => r.left_running);
	for (const rows of multibuffers.values()) grid.append(multibufferPicture(rows, flies));
	if (k.programs_per_sm) grid.append(occupancyPicture(k, extra.kernels[i]));
	if (k.live_registers.length) grid.append(registersPicture(k, live));
	section.append(grid);
	return grid.firstChild ? section : null;
}

const made = new Set();
function prepare(i) {
	if (made.has(i)) return;
	made.add(i);
	const k = report.kernels[i], part = $(`k${i}-report`);
	let opened = new Set();
	for (const article of all("article", part)) {
		const row = k.rows[+article.dataset.row], details = decorate(article, row);
		if (details && !opened.has(row.kind) && ["load", "product"].includes(row.kind)) { details.open = true; opened.add(row.kind); }
	}
	const pictures = summary(k, i);
	if (pictures) part.before(pictures);
	for (const pane of all(`.pane[data-k="${i}"]`)) for (const code of all("code", pane)) colour(code, pane.dataset.form);
}

/* ---- colours of words ---- */

const words = {
	source: /(\/\/.*)|("(?:[^"\\]|\\.)*")|\b(kernel|fn|let|var|const|if|else|for|in|while|return|import|type|grid|requires|options|autotune|key|where|order|try|cost|static|break|continue|true|false|range|struct)\b|\b(\d[\w.]*)\b/g,
	ir: /(;.*)|("(?:[^"\\]|\\.)*")|(%[\w.]+)|\b(\d[\w.]*)\b/g,
	ptx: /(\/\/.*)|("(?:[^"\\]|\\.)*")|((?:%|\$)[\w.]+)|\b(\d[\w.]*)\b/g,
};
const classes = {source: ["comment", "string", "keyword", "number"], ir: ["comment", "string", "name", "number"], ptx: ["comment", "string", "name", "number"]};
function colour(code, form) {
	const set = form === "source" ? "source" : form === "tile" || form === "scheduled" ? "ir" : "ptx", text = code.textContent;
	if (form === "sass" || code.closest(".quiet, .gap")) return;
	const parts = [];
	let at = 0;
	for (const m of text.matchAll(words[set])) {
		const group = m.slice(1).findIndex(x => x !== undefined);
		parts.push(text.slice(at, m.index), make("span", {class: classes[set][group]}, m[0]));
		at = m.index + m[0].length;
	}
	if (parts.length) code.replaceChildren(...parts, text.slice(at));
}

/* ---- lines that belong together ---- */

let current = 0, lit = [];
const visible = pane => pane.offsetParent !== null;
function scrollTo(box, line) {
	const b = box.getBoundingClientRect(), l = line.getBoundingClientRect();
	if (l.top < b.top + 24 || l.bottom > b.bottom - 24) box.scrollTop += l.top - b.top - box.clientHeight / 3;
}
function select(place, from) {
	for (const e of lit) e.classList.remove("on");
	lit = all(`[data-l="${place}"]`).filter(e => !e.closest("[data-k]") || e.closest("[data-k]").dataset.k == current);
	for (const e of lit) e.classList.add("on");
	for (const pane of all(".pane")) {
		const line = visible(pane) && lit.find(e => pane.contains(e) && visible(e));
		if (line && !(from && pane.contains(from))) scrollTo(pane.querySelector(".scroll"), line);
	}
}
function follow() {
	let target = null;
	try { target = location.hash.length > 1 ? $(decodeURIComponent(location.hash.slice(1))) : null; } catch { return; }
	if (!target) return;
	const owner = target.closest("[data-k]");
	if (owner) show(+owner.dataset.k);
	const pane = target.closest(".pane");
	if (pane && !visible(pane)) toggle(pane.dataset.form, true);
	const line = target.closest("[data-l]");
	if (line && line.matches(".quiet")) comments.click();
	if (line) select(line.dataset.l, null);
	if (owner || !pane) target.scrollIntoView({block: pane ? "nearest" : "start"});
}
function step(box, by) {
	const lines = all("p[data-l]", box).filter(visible), at = lines.findIndex(p => p.classList.contains("on"));
	let next = at < 0 ? 0 : at + by;
	while (lines[next] && lines[at] && lines[next].dataset.l === lines[at].dataset.l) next += by;
	if (!lines[next]) return;
	select(lines[next].dataset.l, box);
	scrollTo(box, lines[next]);
}
for (const box of all(".scroll")) {
	box.addEventListener("click", e => {
		const line = e.target.closest("p[data-l]");
		if (!line || getSelection().toString()) return;
		if (e.target.closest("a") && e.target.closest(".badges")) return;
		if (e.target.closest("a")) { e.preventDefault(); history.replaceState(null, "", e.target.closest("a").getAttribute("href")); }
		select(line.dataset.l, line);
	});
	box.addEventListener("keydown", e => {
		if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
		e.preventDefault();
		step(box, e.key === "ArrowDown" ? 1 : -1);
	});
	for (const a of all("p > a", box)) a.tabIndex = -1;
}

/* ---- which kernel, which panes ---- */

const forms = [["source", "Source"], ["tile", "Tile IR"], ["scheduled", "Scheduled IR"], ["ptx", "PTX"], ["sass", "SASS"]], on = {};
const buttons = make("div", {class: "switch", role: "group", "aria-label": "Panes"});
function apply_panes() {
	for (const pane of all(".pane")) pane.hidden = !on[pane.dataset.form] || (pane.dataset.k !== undefined && +pane.dataset.k !== current);
	for (const b of all("[data-form]", buttons)) b.setAttribute("aria-pressed", String(on[b.dataset.form]));
}
function toggle(form, to) {
	on[form] = to === undefined ? !on[form] : to;
	apply_panes();
}
for (const [form, title] of forms) {
	const b = make("button", {type: "button", "data-form": form}, title);
	b.addEventListener("click", () => toggle(form));
	buttons.append(b);
}
function gutters(i) {
	const k = report.kernels[i], most = Math.max(1, ...k.live_registers.map(l => l.registers)), by = new Map();
	for (const l of k.live_registers) by.set(placeOf(l.file, l.line), l.registers);
	const facts = new Map();
	k.rows.forEach((row, n) => {
		const place = placeOf(row.file, row.line);
		if (!facts.has(place)) facts.set(place, new Map());
		if (!facts.get(place).has(row.kind)) facts.get(place).set(row.kind, n);
	});
	for (const old of all("#source .gutter, #source .badges")) old.remove();
	for (const p of all("#source p[data-l]")) {
		const n = by.get(p.dataset.l), gutter = make("span", {class: "gutter", title: n ? `about ${n} registers hold values here` : ""});
		if (n) gutter.append(make("i", {style: `width: ${Math.round(100 * n / most)}%`}), make("b", {}, `${n}`));
		if (!counters) p.querySelector("a").after(gutter);
		if (!facts.has(p.dataset.l)) continue;
		const badges = make("span", {class: "badges"});
		for (const [kind, row] of facts.get(p.dataset.l)) badges.append(make("a", {href: `#k${i}-r${row}`}, kind));
		p.append(badges);
	}
}
/* ---- what the simulator counted ---- */

const heat = (n, most, of) => `background: rgba(var(${of}), ${n ? (.12 + .68 * Math.log1p(n) / Math.log1p(most)).toFixed(2) : 0})`;
function brief(n) {
	if (n < 10000) return `${n}`;
	return n < 1e7 ? `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)}k` : n < 1e10 ? `${(n / 1e6).toFixed(n < 1e8 ? 1 : 0)}M` : `${(n / 1e9).toFixed(1)}G`;
}
const names = ["instructions", "lanes", "requests", "sectors", "bytes", "shared", "conflicts"];
function told(c) {
	let text = `${plural(c.instructions, "instruction")} of warps, ${(c.lanes / c.instructions).toFixed(1)} lanes each`;
	if (c.requests) text += `; ${plural(c.requests, "request")} of global memory, ${(c.sectors / c.requests).toFixed(2)} sectors each, ${Math.round(100 * c.bytes / (32 * c.sectors))}% of their bytes used`;
	if (c.shared) text += `; ${plural(c.shared, "access", "accesses")} of shared memory, ${plural(c.conflicts, "bank conflict")}`;
	return text;
}
function countLines() {
	const lines = new Map(), places = new Map();
	for (const [number, ...values] of counters.lines) {
		const c = {}, p = $(`k0-ptx-${number}`), place = p && p.dataset.l;
		names.forEach((name, i) => { c[name] = values[i]; });
		lines.set(`k0-ptx-${number}`, c);
		if (!place) continue;
		if (!places.has(place)) places.set(place, Object.fromEntries(names.map(n => [n, 0])));
		for (const n of names) places.get(place)[n] += c[n];
	}
	return {lines, places};
}
function putCounts(box, all_lines, find, conflicts) {
	const most = {}, found = all_lines.map(p => [p, find(p)]);
	for (const n of names) most[n] = Math.max(1, ...found.map(([, c]) => c ? c[n] : 0));
	for (const [p, c] of found) {
		const count = make("span", {class: "count", title: c ? told(c) : "", style: c ? heat(c.instructions, most.instructions, "--heat") : ""}, c ? brief(c.instructions) : "");
		const bank = conflicts ? make("span", {class: "count bank", title: c && c.shared ? told(c) : "", style: c ? heat(c.conflicts, most.conflicts, "--conflict") : ""}, c && c.shared ? brief(c.conflicts) : "") : null;
		p.querySelector("a").after(...[count, bank].filter(x => x));
	}
}
function showCounters() {
	const {lines, places} = countLines(), c = counters, sum = Object.values(c.instructions).reduce((a, b) => a + b, 0);
	const facts = make("dl", {class: "facts"});
	const fact = (name, value, more, warn) => facts.append(make("div", {class: warn ? "warn" : null}, make("dt", {}, name), make("dd", {}, value, more ? make("small", {}, ` ${more}`) : "")));
	fact("programs", c.programs.toLocaleString("en"));
	fact("instructions", sum.toLocaleString("en"), `of warps, ${(c.lanes / Math.max(sum, 1)).toFixed(1)} lanes each`);
	for (const kind of ["load", "store"]) if (c[`${kind}_requests`])
		fact(`global ${kind}s`, (c[`${kind}_sectors`] / c[`${kind}_requests`]).toFixed(2), `sectors a request, ${Math.round(100 * c[`${kind}_bytes`] / (32 * c[`${kind}_sectors`]))}% used`);
	fact("shared accesses", c.shared_requests.toLocaleString("en"));
	fact("bank conflicts", c.shared_conflicts.toLocaleString("en"), "", c.shared_conflicts > 0);
	fact("barriers passed", c.barriers.toLocaleString("en"));
	const classes = Object.entries(c.instructions).filter(e => e[1]).sort((a, b) => b[1] - a[1]), most = classes[0] ? classes[0][1] : 1;
	const bars = canvas(420, classes.length * 16 + 2, "instructions by class", ...classes.flatMap(([name, n], i) => [
		write(112, i * 16 + 11.5, name, {"text-anchor": "end", class: "dim"}), draw("rect", {x: 118, y: i * 16 + 2, width: 210 * n / most, height: 11, style: "fill: var(--bar)"}),
		write(118 + 210 * n / most + 5, i * 16 + 11.5, n.toLocaleString("en"), {"font-size": 10})]));
	const item = (of, text) => make("span", {}, make("i", {style: `background: rgba(var(${of}), .7)`}), text);
	$("launch").append(make("section", {class: "summary"}, make("h3", {}, "A simulated launch"), facts,
		make("div", {class: "legend"}, item("--heat", "left of a line: how often warps ran its instructions"), item("--conflict", "right of that: bank conflicts of its shared accesses")),
		make("details", {}, make("summary", {}, "instructions by class"), make("div", {class: "box"}, bars))));
	putCounts($("source"), all("#source p[data-l]"), p => places.get(p.dataset.l), c.shared_requests > 0);
	putCounts($("k0-ptx"), all("#k0-ptx p[id]"), p => lines.get(p.id), c.shared_requests > 0);
}

function show(i) {
	current = i;
	for (const e of all("[data-k]")) if (!e.closest("nav") && !e.classList.contains("pane")) e.hidden = +e.dataset.k !== i;
	for (const a of all("nav a")) if (+a.dataset.k === i) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current");
	prepare(i);
	for (const e of all(`.summary[data-k="${i}"]`)) e.hidden = false;
	gutters(i);
	apply_panes();
}

const wide = matchMedia("(min-width: 46rem)").matches;
for (const [form] of forms) on[form] = form === "source" || form === "ptx" || (wide && form !== "scheduled");
if (wide && innerWidth < 1100) on.tile = false;
if (report.kernels.every((k, i) => !$(`k${i}-sass`).querySelector("p[id]"))) on.sass = false;
const comments = make("button", {type: "button", "aria-pressed": "false", title: "lines of PTX and SASS that are comments or directives of lines"}, "Comments");
comments.addEventListener("click", () => comments.setAttribute("aria-pressed", String(!$("code").classList.toggle("hush"))));
$("code").classList.add("hush");
buttons.append(comments);
if (report.kernels.length < 2) $("kernels").hidden = true;
$("code").prepend(buttons);
for (const code of all("#source code")) colour(code, "source");
for (const a of all("nav a")) a.addEventListener("click", () => show(+a.dataset.k));
addEventListener("hashchange", follow);
if (counters) showCounters();
if (report.kernels.length) show(0);
if (location.hash) follow();
else if (report.kernels.length) {
	const first = report.kernels[0].rows.find(r => ["load", "product", "tensor copy", "copy ahead"].includes(r.kind)) || report.kernels[0].rows[0];
	if (first) select(placeOf(first.file, first.line), null);
}
document.documentElement.dataset.ready = "yes";
})();
