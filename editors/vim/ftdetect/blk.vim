autocmd BufNewFile,BufRead *.blk setfiletype blk
