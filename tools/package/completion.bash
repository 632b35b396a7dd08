# bash completion of blkc and blkrun.  The options, and the values that one word can have, are what the command's own
# --help says, so an installed command and its completion cannot differ.

# What stands behind --NAME= in the help: the lower-case words between bars, and of --emit= the kinds that it lists.
_blk_values() { # command, option with its =
	case $2 in
	--target=) "$1" --list-targets | sed 's/ .*//' ;;
	--passes= | --print-after=)
		"$1" --list-passes | awk '{ print $1 }'
		[ "$2" = --passes= ] || echo all
		;;
	--emit=) "$1" --help | awk '/^  --/ { on = /--emit=/ } on' | grep -oE '\b[a-z]+\b' | grep -vxE 'emit|for|cpu' ;;
	*) "$1" --help | grep -oE -- " $2[^ ]*" | head -n 1 | sed 's/^[^=]*=//' | tr '|' '\n' | grep -xE '[a-z]+' ;;
	esac
}
_blk_options() { # command
	"$1" --help | grep -oE -- '(^|[ (])--?[A-Za-z][-A-Za-z0-9]*=?' | sed 's/^[ (]//' | sort -u |
		awk '{ plain = $0; sub(/=$/, "", plain); if (plain != last && NR > 1) print held; held = $0; last = plain } END { print held }'
}
_blk() {
	local command=${COMP_WORDS[0]} word=${COMP_LINE:0:COMP_POINT} value
	word=${word##* }
	case $word in
	-*=*)
		value=${word#*=}
		local before=
		case $value in *,*) before=${value%,*}, ;; esac
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(_blk_values "$command" "${word%%=*}=" 2>/dev/null)" -- "${value##*,}")
		case $word in --emit=* | --passes=*) compopt -o nospace 2>/dev/null ;; esac
		;;
	-*)
		mapfile -t COMPREPLY < <(compgen -W "$(_blk_options "$command" 2>/dev/null)" -- "$word")
		case ${COMPREPLY[0]-} in *=) compopt -o nospace 2>/dev/null ;; esac
		;;
	*) COMPREPLY=() ;; # files, by readline
	esac
}
complete -o default -F _blk blkc blkrun
