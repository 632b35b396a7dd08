setlocal commentstring=//\ %s comments=://,s1:/*,mb:*,ex:*/
setlocal expandtab shiftwidth=4 softtabstop=4 textwidth=120
setlocal makeprg=blkc\ --emit=tile\ -o\ /dev/null\ %
setlocal errorformat=%f:%l:%c:\ %trror[%m,%f:%l:%c:\ %tarning[%m
setlocal formatprg=blkc\ --format\ -
