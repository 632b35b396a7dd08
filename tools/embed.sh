#!/bin/sh
# usage: embed.sh FILE.blk... >lib.c    The built-in library as C arrays (see compiler/lib/lib.h).
set -e
echo '#include "lib/lib.h"'
echo '#include <string.h>'
i=0
for f in "$@"; do
	i=$((i + 1))
	echo "static const unsigned char text_$i[] = {"
	od -An -v -tu1 "$f" | sed 's/  */,/g; s/^,//; s/$/,/'
	echo "0};"
done
echo 'const lib_source lib_sources[] = {'
i=0
for f in "$@"; do
	i=$((i + 1))
	echo "	{\"$(basename "$f")\", (const char *)text_$i, sizeof text_$i - 1},"
done
cat <<'END'
	{0, 0, 0},
};
const lib_source *lib_find(const char *name)
{
	for (const lib_source *s = lib_sources; s->name; s++)
		if (strcmp(s->name, name) == 0) return s;
	return 0;
}
END
