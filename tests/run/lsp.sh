#!/bin/sh
# usage: lsp.sh BUILD      The language server, asked by a client over its standard input and output (lsp.py); `blkc --lsp`
# starts it; Neovim's own client where there is one.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
lsp=$build/bin/blk-lsp
status 0 "version" "$lsp" --version; says '^blk-lsp [0-9]'
status 0 "help" "$lsp" --help; says '^usage: blk-lsp'
for option in --nothing -I -D -DN -D=3; do status 2 "$option" "$lsp" $option; says "unknown option or missing value: "; done
status 1 "no exit" "$lsp" </dev/null
status 0 "blkc --lsp" "$build/bin/blkc" --lsp --version; says '^blk-lsp [0-9]'
cp "$build/bin/blkc" . && status 1 "blkc alone" env LD_LIBRARY_PATH="$build/lib" ./blkc --lsp; says "cannot start '.*/blk-lsp'"
if command -v python3 >/dev/null; then
	suite timeout 300 python3 "$root/tests/run/lsp.py" "$lsp" "$root" "$build/bin/blkc"
else
	skip 1
fi
if command -v nvim >/dev/null; then
	cp "$root/examples/vector_add/vector_add.blk" .
	XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir XDG_STATE_HOME=$dir XDG_CACHE_HOME=$dir LSP=$lsp EDITORS=$root/editors \
		suite timeout 120 nvim --headless -u NONE -c "luafile $root/tests/run/nvim.lua" </dev/null
else
	echo "skipped: there is no Neovim"
	skip 1
fi
finish
