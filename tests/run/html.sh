#!/bin/sh
# usage: html.sh BUILD      blkc --explain=html and blkrun --counters=html: what the pages hold, and how they look and act in Chromium.
# page.py reads a page without a browser, browser.py opens it at 1280 and 400 pixels, light and dark, and runs a script in it.
# Who holds what is known by hand: 128 threads with 16 bytes each, and the accumulator of wgmma as PTX's manual draws it.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
blkc=$build/bin/blkc blkrun=$build/bin/blkrun
cp -r "$root/examples" examples
have_ptxas=false have_browser=false
{ command -v ptxas || [ -x /usr/local/cuda/bin/ptxas ]; } >/dev/null 2>&1 && have_ptxas=true
command -v chromium >/dev/null 2>&1 && have_browser=true
lines() { # what, command...: each line that is "ok" is a test that passed
	what=$1
	shift
	"$@" >found 2>&1
	grep -q '^ok' found || bad "$what: $(tail -3 found)"
	while read -r line; do
		[ "$line" = ok ] && ok || bad "$what: $line"
	done <found
}
page() { lines "$1" python3 "$root/tests/run/page.py" "$@"; }
helpers="const q = s => document.querySelector(s), qa = s => [...document.querySelectorAll(s)], root = document.documentElement;
	const out = [], say = (good, what) => out.push([Boolean(good), String(what)]), wait = () => new Promise(r => setTimeout(r, 60));
	say(root.dataset.ready === 'yes', 'the script ends');
	say(root.scrollWidth <= width && document.body.scrollWidth <= width, 'the page scrolls sideways: ' + root.scrollWidth);"
browser() { # page, how many checks its script makes, script
	if $have_browser; then
		lines "$1 in a browser" python3 "$root/tests/run/browser.py" "$1" "$helpers $3 return out;"
	else
		skip $(((2 + $2 + 2) * 4))
	fi
}

softmax="examples/softmax/softmax.blk --kernel=softmax_rows --specialize=x%16,y%16,stride%16,n%16"
matmul="examples/matmul/matmul.blk --kernel=matmul --target=sm_90a -D BM=64 -D BN=64 -D BK=64 -D num_warps=4 --specialize=a%16,b%16,c%16,M%16,N%16,K%16"

# The words of the command line.
status 0 "--explain=html" "$blkc" $softmax --explain=html
[ -s softmax.html ] && [ ! -e softmax.ptx ] && ok || bad "--explain=html writes softmax.html and nothing else"
status 0 "--emit=html" "$blkc" $softmax --emit=html,ptx,json,explain,tile,layout -Werror
status 0 "-o" "$blkc" $softmax --explain=html -o again.html
cmp -s softmax.html again.html && ok || bad "the same input, another page"
LC_ALL=C TZ=Asia/Tokyo HOME=/nonexistent "$blkc" $softmax --explain=html -o - >third.html
cmp -s softmax.html third.html && ok || bad "another environment, another page"
status 0 "--explain=json" "$blkc" $softmax --explain=json -o j
cmp -s j softmax.json && ok || bad "--explain=json is not --emit=json"
status 0 "--explain=text" "$blkc" $softmax --explain=text -o again.ptx
says_text "kernel softmax_rows"
cmp -s softmax.ptx again.ptx && ok || bad "the page changes the PTX"
status 2 "another form" "$blkc" $softmax --explain=xml
says_text "--explain is text, json or html, not 'xml'"
status 2 "no page of the cpu" "$blkc" $softmax --target=cpu --explain=html
says_text "target cpu has no layouts"
status 0 "with JSON diagnostics" "$blkc" $softmax --explain=html --diagnostics=json -o again.html
echo 'const N = 1;' >none.blk
status 1 "no kernel" "$blkc" none.blk --explain=html
[ -e none.html ] && bad "a page without a kernel" || ok
status 0 "without line information" "$blkc" $softmax --explain=html -g0 -o g0.html

# What it holds.
page softmax.html examples/softmax/softmax.blk --json=softmax.json --explain=softmax.explain --ptx=softmax.ptx --tile=softmax.tile --layout=softmax.layout
page g0.html examples/softmax/softmax.blk
status 0 "a product" "$blkc" $matmul --emit=html,ptx,json,explain,tile,layout
page matmul.html examples/matmul/matmul.blk --json=matmul.json --explain=matmul.explain --ptx=matmul.ptx --tile=matmul.tile --layout=matmul.layout
status 0 "many kernels" "$blkc" examples/layer_norm/layer_norm.blk --emit=html,json,explain
page layer_norm.html examples/layer_norm/layer_norm.blk --json=layer_norm.json --explain=layer_norm.explain
status 0 "without ptxas" env PATH=/nonexistent "$blkc" $softmax --explain=html -o bare.html
if [ -x /usr/local/cuda/bin/ptxas ]; then skip 1; else grep -q 'unknown: no ptxas' bare.html && ok || bad "why registers are unknown"; fi

# SASS beside it, by a stand-in that prints as nvdisasm does.
if $have_ptxas; then
	mkdir tools
	ln -s "$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)" tools/ptxas
	cat >tools/code <<'N'
	//## File "examples/softmax/softmax.blk", line 6
        /*0000*/                   MOV R1, c[0x0][0x28] ;
	//## File "elsewhere", line 1
.L_x:
        /*0010*/                   EXIT ;
N
	cat >tools/live <<'N'
text // | # |
        /*0000*/                   MOV R1 ; // |   7   |   9 |
.L_x: // +...+
        /*0010*/     EXIT ; // |  12  |     |
N
	cat >tools/nvdisasm <<'N'
#!/bin/sh
[ "$*" = "-c -g $3" ] && [ -s "$3" ] && exec cat tools/code
[ "$*" = "-c -plr -lrm count $5" ] && [ -s "$5" ] && exec cat tools/live
exit 1
N
	chmod +x tools/nvdisasm
	status 0 "SASS" "$blkc" $softmax --explain=html --ptxas=tools/ptxas -o sass.html
	name=SASS
	cp sass.html out
	says_text 'data-l="f0-6" data-live="7"><a href="#f0-6">3</a><code>/*0000*/  MOV R1, c[0x0][0x28] ;</code>'
	says_text 'id="k0-sass-5" data-live="12"><a href="#k0-sass-5">5</a><code>/*0010*/  EXIT ;</code>'
	page sass.html examples/softmax/softmax.blk
	printf '#!/bin/sh\necho "no <such> machine" >&2\nexit 1\n' >tools/nvdisasm
	status 0 "a disassembler that fails" "$blkc" $softmax --explain=html --ptxas=tools/ptxas -o sass.html
	cp sass.html out
	says_text 'nvdisasm: no &lt;such&gt; machine</p>'
else skip 19; fi

# What comes from outside is never markup.
hostile="a<b>&']]>.blk"
cat >"$hostile" <<'H'
// </script><script>window.broken = 1</script> <!-- </style> --> <img src=x onerror="window.broken = 2"> ]]> &lt; "quoted"
kernel k(y: *f32, x: *const f32, n: i32) requires n > 0, "</p></code><script>window.broken = 3</script>" {
    let i = arange(0, 1024); // é ü 漢 &amp; {{script}}
    store(y + i, load(x + i, mask = i < n)); // </textarea><svg onload="window.broken = 4">
}
H
status 0 "a hostile source" "$blkc" "$hostile" --explain=html -o hostile.html
page hostile.html "$hostile"
grep -q '<script>window' hostile.html && bad "markup from the source" || ok
printf '// \001 a\tb\r\nkernel k(y: *f32) { store(y, 1.0); } // last line' >bytes.blk
status 0 "bytes that are no text" "$blkc" bytes.blk --explain=html
page bytes.html bytes.blk

# Counts beside the lines: what is printed and what the page has are one launch.
turn="kernel turn(y: *i8, x: *const i8) options(num_warps = 1) {
    let i = arange(0, 32);
    let j = arange(0, 64);
    store(y + j[:, None] * 32 + i[None, :], trans(load(x + i[:, None] * 64 + j[None, :])));
}"
echo "$turn" >turn.blk
status 0 "counters" "$blkrun" turn.blk y=i8[2048] x=i8[2048]:arange --grid=1 --device=sim --counters=html
says_text "page: turn.html"
page turn.html turn.blk
cp out turn.out
cat >counted.py <<'P'
import json, re, sys
page = open("turn.html", encoding="utf-8").read()
c = json.loads(re.search(r'<script type="application/json" id="counters">(.*?)</script>', page, re.S)[1])
text = open("turn.out").read()
printed = {m[1].strip(): int(m[2]) for m in re.finditer(r"^  ([a-z, ]+?) +(\d+)", text, re.M)}
lines = c["lines"]
def check(good, what): print("ok" if good else f"FAILED: {what}: {c}")
check(c["programs"] == printed["programs"] == 1, "programs")
check(all(c["instructions"].get(k, v) == v for k, v in printed.items()), "classes")
check(sum(l[1] for l in lines) == sum(c["instructions"].values()), "instructions of lines")
check(sum(l[2] for l in lines) == printed["lanes that took part"], "lanes")
check(sum(l[3] for l in lines) == c["load_requests"] + c["store_requests"] == printed["global loads"] + printed["global stores"], "requests")
check(sum(l[4] for l in lines) == c["load_sectors"] + c["store_sectors"], "sectors")
check(sum(l[5] for l in lines) == 2 * 2048, "bytes")
check(sum(l[6] for l in lines) == printed["shared accesses"], "shared")
check(sum(l[7] for l in lines) == printed["bank conflicts"] > 0, "conflicts")
ptx = {int(n): text for n, text in re.findall(r'id="k0-ptx-(\d+)".*?<code>(.*?)</code>', page)}
check(all(".shared" in ptx[l[0]] or "matrix" in ptx[l[0]] for l in lines if l[6]), "shared accesses are at such instructions")
check(all(".global" in ptx[l[0]] for l in lines if l[3]), "requests are at such instructions")
P
lines "counts by line" python3 counted.py
status 0 "counters as text" "$blkrun" turn.blk y=i8[2048] x=i8[2048] --grid=1 --device=sim --counters=text
silent "page:"
status 2 "another form" "$blkrun" turn.blk y=i8[2048] x=i8[2048] --grid=1 --device=sim --counters=xml
says_text "--counters is text or html, not xml"
status 2 "of one launch" "$blkrun" turn.blk n=1024..2048 y=i8[n] x=i8[n] --grid=1 --device=sim --counters=html
says_text "a page of one launch, not of 2 sizes"
status 1 "on another device" "$blkrun" turn.blk y=i8[2048] x=i8[2048] --grid=1 --device=cpu --counters=html
"$blkc" turn.blk -o turn.ptx
status 1 "without the source" "$blkrun" turn.ptx y=i8[2048] x=i8[2048] --grid=1 --device=sim --counters=html
says_text "needs its source"
mkdir ro && (cd ro && mkdir turn.html)
status 1 "where it cannot be written" sh -c "cd ro && $blkrun ../turn.blk y=i8[2048] x=i8[2048] --grid=1 --device=sim --counters=html"
says_text "cannot write turn.html"
# A launch whose arguments promise something, with defines: its page has the code that ran.
status 0 "counters of promises" "$blkrun" examples/softmax/softmax.blk:softmax_rows -D BLOCK=512 -D num_warps=2 y=f32[3,512] x=f32[3,512]:randn \
	stride=512 rows=3 n=512 --device=sim --counters=html
"$blkc" examples/softmax/softmax.blk --kernel=softmax_rows -D BLOCK=512 -D num_warps=2 --specialize=x%16,y%16,stride%16,n%16 --checks -o promised.ptx
page softmax_rows.html examples/softmax/softmax.blk --ptx=promised.ptx

# In a browser.
[ -n "$UPDATE_SHOTS" ] && export SHOTS="$UPDATE_SHOTS"
browser softmax.html 19 "
	const [r] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
	say(dark ? r < 60 : r > 200, 'the background is ' + r);
	const rgb = c => c.match(/[\\d.]+/g).slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
	const light = c => { const [x, y, z] = rgb(c); return .2126 * x + .7152 * y + .0722 * z; };
	const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + .05) / (y + .05); };
	const panel = getComputedStyle(q('.pane')).backgroundColor;
	for (const s of ['.scroll code', '.keyword', '.comment', '.number', '.facts dt', '.fact p', 'figcaption'])
		say(contrast(getComputedStyle(q(s)).color, panel) >= 4.4, s + ' can be read: ' + contrast(getComputedStyle(q(s)).color, panel).toFixed(1));
	q('#f0-7 code').click(); await wait();
	const on = qa('#k0-ptx .on');
	say(on.length > 3 && on.every(p => p.dataset.l === 'f0-7') && q('#f0-7').classList.contains('on'), 'a click lights its PTX');
	const box = q('#k0-ptx .scroll').getBoundingClientRect(), first = on.find(p => p.offsetParent).getBoundingClientRect();
	say(first.top >= box.top && first.bottom <= box.bottom, 'and shows it');
	q('#source .scroll').focus();
	document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true})); await wait();
	say(q('#f0-8').classList.contains('on') && !q('#f0-7').classList.contains('on'), 'an arrow key goes on');
	say(qa('a, button, input, summary').filter(e => e.offsetParent && e.tabIndex >= 0).length < 60, 'few stops of the tab key');
	const scheduled = q('button[data-form=scheduled]');
	scheduled.click(); await wait();
	say(scheduled.getAttribute('aria-pressed') === 'true' && q('#k0-scheduled').offsetParent, 'a button shows a pane');
	say(root.scrollWidth <= width, 'which keeps the page as wide: ' + root.scrollWidth);
	scheduled.click();
	for (const d of qa('details')) d.open = true;
	await wait();
	say(qa('details').every(d => d.querySelector('svg')), 'each fact has its pictures');
	const cells = qa('#k0-r0 figure:first-child rect').map(c => +c.dataset.t);
	const told = q('#k0-r0 figure:nth-child(2) .told').textContent;
	say(cells.length === 256, 'elements in 256 pieces: ' + cells.length);
	say(q('#k0-r0').textContent.includes('load') && q('#k0-r0 input'), 'a slider');
	q('#k0-r0 input').value = 37; q('#k0-r0 input').dispatchEvent(new Event('input'));
	say(q('#k0-r0 .told').textContent.startsWith('warp 1, lane 5: 8 elements: (148)'), q('#k0-r0 .told').textContent);
	say(told === 'access 1 of 2: 512 bytes in 1 run, 16 sectors of 32 bytes (100% used)', told);
	say(root.scrollWidth <= width, 'with pictures the page scrolls sideways: ' + root.scrollWidth);"
browser matmul.html 4 "
	const r = JSON.parse(q('#report').textContent).kernels[0], i = r.rows.findIndex(x => x.kind === 'product');
	q('#k0-r' + i + ' details').open = true; await wait();
	const cells = qa('#k0-r' + i + ' rect[data-t]').map(c => [+c.dataset.t, Math.round((c.getAttribute('y') - 14) / 8), Math.round((c.getAttribute('x') - 30) / 8)]);
	say(cells.length === 64 * 32 && cells.every(([t, y, x]) => t === 32 * (y >> 4) + 4 * (y & 7) + (x >> 1 & 3)), 'the accumulator of wgmma: ' + cells.slice(0, 4));
	const card = qa('.card').find(c => c.textContent.includes('Multibuffer of 3 stages'));
	say(card && card.textContent.includes('a f16[64,64], b f16[64,64]') && card.textContent.includes('stage 2'), 'the multibuffer');
	say(qa('.card').some(c => c.textContent.includes('Registers by line')), 'registers');
	location.hash = '#k0-r' + i; await wait();
	const at = q('#k0-r' + i).getBoundingClientRect();
	say(at.top >= -1 && at.top < innerHeight && q('#k0-r' + i).closest('.at').classList.contains('on'), 'a link to a fact: ' + at.top);"
browser layer_norm.html 3 "
	const tabs = qa('nav a');
	tabs[1].click(); await wait();
	say(q('#k1-ptx').offsetParent && !q('#k0-ptx').offsetParent && q('#k1-report').offsetParent && !q('#k0-report').offsetParent, 'another kernel');
	say(tabs[1].getAttribute('aria-current') === 'true' && !tabs[0].getAttribute('aria-current'), 'and its tab');
	location.hash = '#k0-ptx-80'; await wait();
	say(q('#k0-ptx').offsetParent && !q('#k1-ptx').offsetParent, 'a link to the first one');"
browser turn.html 4 "
	const c = JSON.parse(q('#counters').textContent), at = n => qa('#f0-' + n + ' .count').map(e => e.textContent);
	say(qa('#k0-ptx .count:not(.bank)').reduce((a, e) => a + +e.textContent, 0) === c.lines.reduce((a, l) => a + l[1], 0), 'counts of PTX');
	say(+at(4)[1] === c.shared_conflicts, 'bank conflicts of line 4: ' + at(4));
	say(getComputedStyle(q('#f0-4 .bank')).backgroundColor !== 'rgba(0, 0, 0, 0)' && at(5)[0] === '', 'as colours');
	say(q('#launch').textContent.includes('bank conflicts'), 'and the launch as a whole');"
browser hostile.html 2 "say(window.broken === undefined, 'a script of the source ran'); say(document.title.includes('<b>'), document.title);"

finish
