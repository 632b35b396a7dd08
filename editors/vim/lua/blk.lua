-- blk-lsp in Neovim, 0.7 or newer: require("blk").setup() in init.lua starts it with the first .blk file.
--
-- In: { cmd = { "blk-lsp" }, include = { DIR, .. }, defines = { NAME = "VALUE", .. }, on_attach = function(client, buffer) },
-- all of which may be left out.  Out: one client, to which every buffer of file type blk is attached.
local M = {}

local function attached(client, buffer)
	vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"
	vim.bo[buffer].tagfunc = "v:lua.vim.lsp.tagfunc"
end

function M.setup(options)
	options = options or {}
	local id
	local config = {
		name = "blk",
		cmd = options.cmd or { "blk-lsp" },
		root_dir = vim.fn.getcwd(),
		init_options = { include = options.include, defines = options.defines },
		on_attach = function(client, buffer)
			attached(client, buffer)
			if options.on_attach then options.on_attach(client, buffer) end
		end,
		on_exit = function() id = nil end,
	}
	vim.api.nvim_create_autocmd("FileType", {
		pattern = "blk",
		callback = function(event)
			if vim.lsp.start then
				vim.lsp.start(config, { bufnr = event.buf })
			else -- before 0.8
				id = id or vim.lsp.start_client(config)
				if id then vim.lsp.buf_attach_client(event.buf, id) end
			end
		end,
	})
end

return M
