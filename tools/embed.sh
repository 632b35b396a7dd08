#!/bin/sh
# usage: embed.sh TABLE FOLDER FILE... >made.c    Files as a table of C arrays (see compiler/lib/lib.h), named from FOLDER on.
set -e
table=$1 folder=$2
shift 2
echo '#include "lib/lib.h"'
echo '#include <string.h>'
i=0
for f in "$@"; do
	i=$((i + 1))
	echo "static const unsigned char text_$i[] = {"
	od -An -v -tu1 "$f" | sed 's/  */,/g; s/^,//; s/$/,/'
	echo "0};"
done
echo "const lib_source ${table}_sources[] = {"
i=0
for f in "$@"; do
	i=$((i + 1))
	echo "	{\"${f#"$folder"/}\", (const char *)text_$i, sizeof text_$i - 1},"
done
cat <<END
	{0, 0, 0},
};
const lib_source *${table}_find(const char *name)
{
	for (const lib_source *s = ${table}_sources; s->name; s++)
		if (strcmp(s->name, name) == 0) return s;
	return 0;
}
END
