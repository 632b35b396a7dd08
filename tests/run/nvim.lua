-- Neovim's own client against blk-lsp, with the file that users copy; started by lsp.sh.
--
-- In: $LSP, $EDITORS, and vector_add.blk in this folder.  Out: a line a check, the last one "N passed, M failed".
local passed, failed = 0, 0
local function say(text) io.stdout:write(text .. "\n") end
local function check(what, fine)
	if fine then passed = passed + 1 else failed = failed + 1; say("FAILED: " .. what) end
end
local function soon(what, condition) check(what, vim.wait(10000, condition, 20)) end
local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") end
local function put(line, new) vim.api.nvim_buf_set_lines(0, line - 1, line, false, { new }) end
-- The cursor onto a word, from the given line on.
local function go(line, word)
	local l = vim.api.nvim_buf_get_lines(0, line - 1, line, false)[1]
	vim.api.nvim_win_set_cursor(0, { line, assert(l:find(word, 1, true)) - 1 })
end
local function ask(method)
	local client = (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1]
	local at = vim.lsp.util.make_position_params(0, client and client.offset_encoding)
	for _, r in pairs(vim.lsp.buf_request_sync(0, method, at, 10000) or {}) do
		if r.result then return r.result end
	end
end

local function checks()
	vim.opt.runtimepath:prepend(vim.env.EDITORS .. "/vim")
	vim.cmd("filetype plugin on")
	local ready = false
	require("blk").setup({ cmd = { vim.env.LSP }, defines = { UNUSED = "1" }, on_attach = function() ready = true end })
	vim.cmd("edit vector_add.blk")
	check("the file's type", vim.bo.filetype == "blk")
	soon("the server answers", function() return ready end)
	check("Ctrl-] asks the server", vim.bo.tagfunc == "v:lua.vim.lsp.tagfunc")

	local whole = vim.api.nvim_buf_get_lines(0, 0, -1, false)
	put(9, "    store(z + offsets, summ, mask = mask);")
	soon("a broken line is reported", function()
		local d = vim.diagnostic.get(0)[1]
		return d and d.lnum == 8 and d.message:find("summ", 1, true)
	end)
	vim.api.nvim_buf_set_lines(0, 0, -1, false, whole)
	soon("and no longer once it is mended", function() return #vim.diagnostic.get(0) == 0 end)

	go(9, "sum")
	local hover = ask("textDocument/hover")
	check("hover", hover and vim.inspect(hover):find("f32%[1024%]") ~= nil)
	vim.lsp.buf.definition()
	soon("definition", function() return vim.api.nvim_win_get_cursor(0)[1] == 8 end)
	go(8, "sum")
	vim.lsp.buf.rename("total")
	soon("rename", function() return text():find("let total = load", 1, true) and text():find("offsets, total, mask", 1, true) end)

	put(7, "  let mask=offsets<n ;")
	if vim.lsp.buf.format then vim.lsp.buf.format({ timeout_ms = 10000 }) else vim.lsp.buf.formatting_sync(nil, 10000) end
	soon("formatting", function() return text():find("\n    let mask = offsets < n;\n", 1, true) end)
end

local fine, why = pcall(checks)
check(tostring(why), fine)
say(passed .. " passed, " .. failed .. " failed")
vim.cmd(failed == 0 and "qa!" or "cq!")
