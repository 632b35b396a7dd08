/* rand, randn, randint and randint4x against recorded values of the same generator (tests/data/philox.json). */
#include "device_test.h"

enum { OFFSETS = 16, SEEDS = 16 };

typedef struct record {
	long long seed;
	double value[5][OFFSETS]; /* ORDER fields */
} record;

static const char *const fields[] = {"rand_bits", "randn", "randint", "randint4x_xor", "randint4x_1"};

static int read_records(record *out)
{
	static const char *const places[] = {"tests/data/philox.json", "../tests/data/philox.json"};
	FILE *f = fopen(places[0], "rb");
	if (!f) f = fopen(places[1], "rb");
	if (!f) return 0;
	char *text = suite_alloc(1 << 20);
	size_t size = fread(text, 1, (1 << 20) - 1, f);
	fclose(f);
	text[size] = 0;
	int n = 0;
	for (char *p = text; n < SEEDS && (p = strstr(p, "\"seed\":")); n++) {
		p += 7;
		out[n].seed = strtoll(p, NULL, 10);
		for (int k = 0; k < 5; k++) {
			char key[32];
			snprintf(key, sizeof key, "\"%s\":", fields[k]);
			char *q = strstr(p, key);
			if (!q) return 0;
			q = strchr(q, '[') + 1;
			for (int i = 0; i < OFFSETS; i++) {
				out[n].value[k][i] = strtod(q, &q);
				q += strspn(q, " ,\n");
			}
		}
	}
	free(text);
	return n;
}

static void run(suite *s, const record *r, int field, const char *seed_type)
{
	static const char *const expressions[] = {
		"rand(SEED, o)", "randn(SEED, o)", "randint(SEED, o)", "(a ^ b) ^ (c ^ d)", "b"};
	char name[64], text[512];
	snprintf(name, sizeof name, "%s.seed%lld.%s", fields[field], r->seed, seed_type);
	if (!suite_wants(s, name)) return;
	scalar type = field < 2 ? SCALAR_F32 : SCALAR_U32;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, n: i32) grid(1) {\nlet o = arange(0, %d);\nlet SEED = (%lld).to(%s);\n%sstore(z + o, "
		"(%s).to(%s));\n}\n",
		scalar_name(type), OFFSETS, r->seed, seed_type,
		field < 3 ? "" : "let (a, b, c, d) = randint4x(SEED, o);\n", expressions[field], scalar_name(type));
	uint32_t got[OFFSETS];
	bool good = suite_run(s, name, text, NULL, 0, type, got, OFFSETS, NULL, NULL, 0, OFFSETS);
	int wrong = 0;
	for (int i = 0; good && i < OFFSETS; i++) {
		float f;
		memcpy(&f, &got[i], 4);
		double want = r->value[field][i];
		bool right = field == 1 ? fabs(f - want) <= 1e-5 : (double)got[i] == want;
		if (!right && wrong++ < 3)
			printf("%s: offset %d gives %#x (%.9g), expected %.9g\n", name, i, got[i], f, want);
	}
	suite_verdict(s, good, wrong, name);
}

int main(int argc, char **argv)
{
	suite s;
	static record records[SEEDS];
	suite_open(&s, argc, argv);
	int n = read_records(records);
	if (n == 0) {
		printf("tests/data/philox.json cannot be read\n");
		s.failed++;
	}
	for (int i = 0; i < n; i++)
		for (int field = 0; field < 5; field++) {
			run(&s, &records[i], field, "i64");
			if (records[i].seed >= 0 && records[i].seed <= INT32_MAX) run(&s, &records[i], field, "i32");
		}
	return suite_close(&s);
}
