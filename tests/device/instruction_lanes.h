/* The rest of instructions.c: what lanes tell each other, memory, atomics, asynchronous copies and matrices.
 * %w0..%w15: words of each lane; %l: its number, %t that of its thread; %s: shared memory; %g: 64 bytes of its own in
 * global memory, all 0 at first.  A form that uses shared memory begins and ends with a barrier. */
#ifndef BLK_INSTRUCTION_LANES_H
#define BLK_INSTRUCTION_LANES_H

#define WITH_FLAG "selp.b32 %r6, 1, 0, %p1; mov.b64 %d0, {%r4, %r6};"
#define SHUFFLE(mode, by, c)                                                                                           \
	{                                                                                                              \
		"shfl.sync." mode ".b32 %r4|%p1, %w0, " by ", " c ", -1; " WITH_FLAG, 8, 0, 80                         \
	}
#define SHUFFLES(mode, whole, eighths)                                                                                 \
	SHUFFLE(mode, "1", whole), SHUFFLE(mode, "5", whole), SHUFFLE(mode, "16", whole), SHUFFLE(mode, "1", eighths), \
		SHUFFLE(mode, "3", eighths), SHUFFLE(mode, "%w1", whole), SHUFFLE(mode, "%w1", eighths)
#define VOTE(mode, of)                                                                                                 \
	{                                                                                                              \
		"setp." of "; vote.sync." mode ".pred %p1, %p2, -1; selp.b32 %r0, 1, 0, %p1;", 4, 0, 80                \
	}
#define REDUX(op, t)                                                                                                   \
	{                                                                                                              \
		"redux.sync." op "." t " %r0, %w0, -1;", 4, 0, 80                                                      \
	}
#define HALF_WARP(what) "mov.b32 %r0, 0; setp.lt.u32 %p1, %l, 16; @!%p1 bra $L_" what "; "

#define EXCHANGE_FORMS                                                                                                 \
	SHUFFLES("up", "0", "0x1800"), SHUFFLES("down", "31", "0x181f"), SHUFFLES("bfly", "31", "0x181f"),             \
		SHUFFLES("idx", "31", "0x181f"), SHUFFLE("bfly", "9", "0x0f"), SHUFFLE("up", "4", "0x1c03"),           \
		VOTE("all", "ge.u32 %p2, %w0, 0"), VOTE("all", "ge.u32 %p2, %l, 1"), VOTE("any", "eq.u32 %p2, %l, 7"), \
		VOTE("any", "eq.u32 %p2, %l, 77"), VOTE("uni", "lt.u32 %p2, %l, 77"),                                  \
		VOTE("uni", "eq.u32 %p2, %l, 3"),                                                                      \
		{"setp.lt.s32 %p2, %w0, 0; vote.sync.ballot.b32 %r0, %p2, -1;", 4, 0, 80},                             \
		{"setp.lt.s32 %p2, %w1, 0; vote.sync.ballot.b32 %r0, !%p2, -1;", 4, 0, 80}, REDUX("add", "u32"),       \
		REDUX("add", "s32"), REDUX("min", "u32"), REDUX("min", "s32"), REDUX("max", "u32"),                    \
		REDUX("max", "s32"), REDUX("and", "b32"), REDUX("or", "b32"), REDUX("xor", "b32"),                     \
		{"and.b32 %r4, %w0, 7; match.any.sync.b32 %r0, %r4, -1;", 4, 0, 80},                                   \
		{"and.b32 %r4, %w1, 3; cvt.u64.u32 %d4, %r4; shl.b64 %d4, %d4, 33; match.any.sync.b64 %r0, %d4, -1;",  \
			4, 0, 80},                                                                                     \
		{"and.b32 %r4, %w0, 7; match.all.sync.b32 %r4|%p1, %r4, -1; " WITH_FLAG, 8, 0, 80},                    \
		{"mov.b64 %d4, 77; match.all.sync.b64 %r4|%p1, %d4, -1; " WITH_FLAG, 8, 0, 80},                        \
		{"activemask.b32 %r0;", 4, 0, 80}, {"elect.sync %r4|%p1, -1; " WITH_FLAG, 8, 0, 90},                   \
		{"mov.u32 %r0, %laneid;", 4, 0, 80},                                                                   \
		{"mov.u32 %r4, %lanemask_lt; mov.u32 %r6, %lanemask_ge; mov.b64 %d0, {%r4, %r6};", 8, 0, 80},          \
		{HALF_WARP("redux") "redux.sync.add.u32 %r0, %w0, 0xffff; $L_redux: bar.warp.sync -1;", 4, 0, 80},     \
		{HALF_WARP("vote") "vote.sync.ballot.b32 %r0, %p1, 0xffff; $L_vote: bar.warp.sync -1;", 4, 0, 80},     \
		{HALF_WARP("shfl") "shfl.sync.down.b32 %r0, %w0, 2, 0x100f, 0xffff; $L_shfl: bar.warp.sync -1;", 4, 0, \
			80},                                                                                           \
		{"mov.b32 {%h4, %h5}, %r1; mov.b32 %r0, {%h5, %h4};", 4, 0, 80},                                       \
		{"mov.b64 {%r4, %r6}, %d1; mov.b64 %d0, {%r6, %r4};", 8, 0, 80},                                       \
	{                                                                                                              \
		"mov.b64 {%h4, %h5, %h6, %h7}, %d1; mov.b64 %d0, {%h7, %h5, %h6, %h4};", 8, 0, 80                      \
	}

/* ---- memory ---- */

#define TO_SHARED "bar.sync 0; shl.b32 %r7, %t, 6; add.u32 %r7, %r7, %s; "
#define NARROW(t)                                                                                                      \
	{TO_SHARED "st.shared.b32 [%r7], %r1; ld.shared." t " %r0, [%r7+1]; bar.sync 0;", 4, 0, 80},                   \
	{                                                                                                              \
		"st.global.b32 [%g], %r2; ld.global." t " %r0, [%g+3];", 4, 0, 80                                      \
	}
#define HASH2 "mov.b64 %d4, {%r10, %r11}; mad.lo.u64 %d0, %d4, 1000003, %d4;"
#define HASH4 "mov.b64 %d4, {%r10, %r11}; mov.b64 %d5, {%r12, %r13}; mad.lo.u64 %d0, %d4, 1000003, %d5;"
#define LOAD4 "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%g]; " HASH4
#define FILL4 "st.global.v4.b32 [%g], {%w0, %w1, %w2, %w3}; "

#define MEMORY_FORMS                                                                                                   \
	NARROW("u8"), NARROW("s8"), {"st.global.b32 [%g], %r2; ld.global.u16 %r0, [%g+2];", 4, 0, 80},                 \
		{"st.global.b32 [%g], %r2; ld.global.s16 %r0, [%g+2];", 4, 0, 80},                                     \
		{"st.global.b64 [%g], 0; st.global.u8 [%g+5], %r1; ld.global.b64 %d0, [%g];", 8, 0, 80},               \
		{"st.global.b64 [%g], 0; st.global.b16 [%g+6], %h1; ld.global.b64 %d0, [%g];", 8, 0, 80},              \
		{FILL4 LOAD4, 8, 0, 80}, {"st.global.v2.b64 [%g], {%d1, %d2}; " LOAD4, 8, 0, 80},                      \
		{"st.global.v2.b32 [%g+8], {%r1, %r2}; st.global.b64 [%g], 7; " LOAD4, 8, 0, 80},                      \
		{"st.global.v4.b16 [%g], {%h1, %h2, %h3, %h1}; ld.global.b64 %d0, [%g];", 8, 0, 80},                   \
		{"st.global.v4.u8 [%g], {%h1, %h2, %h3, %h1}; ld.global.b32 %r0, [%g];", 4, 0, 80},                    \
		{FILL4 "ld.global.v2.b64 {%d6, %d7}, [%g]; mad.lo.u64 %d0, %d6, 3, %d7;", 8, 0, 80},                   \
		{FILL4 "ld.global.v4.b16 {%h4, %h5, %h6, %h7}, [%g+8]; mov.b64 %d0, {%h4, %h5, %h6, %h7};", 8, 0, 80}, \
		{FILL4 "ld.global.v4.u8 {%h4, %h5, %h6, %h7}, [%g+4]; mov.b64 %d0, {%h4, %h5, %h6, %h7};", 8, 0, 80},  \
		{FILL4 "ld.global.v2.s8 {%h4, %h5}, [%g+4]; mov.b32 %r0, {%h4, %h5};", 4, 0, 80},                      \
		{FILL4 "ld.global.L1::no_allocate.v4.b32 {%r10, %r11, %r12, %r13}, [%g]; " HASH4, 8, 0, 80},           \
		{FILL4 "ld.volatile.global.b32 %r0, [%g+12];", 4, 0, 80},                                              \
		{FILL4 "ld.relaxed.gpu.global.b64 %d0, [%g+8];", 8, 0, 80},                                            \
		{FILL4 "ld.acquire.sys.global.b32 %r0, [%g+4];", 4, 0, 80},                                            \
		{"st.release.gpu.global.b64 [%g], %d1; ld.global.b64 %d0, [%g];", 8, 0, 80},                           \
		{TO_SHARED "st.shared.v4.b32 [%r7], {%w0, %w1, %w2, %w3}; ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, " \
			   "[%r7]; " HASH4 " bar.sync 0;",                                                             \
			8, 0, 80},                                                                                     \
		{TO_SHARED "st.shared.v2.b64 [%r7], {%d1, %d2}; ld.shared.v2.b64 {%d4, %d5}, [%r7]; xor.b64 %d0, "     \
			   "%d4, %d5; bar.sync 0;",                                                                    \
			8, 0, 80},                                                                                     \
		{TO_SHARED "st.shared.b32 [%r7], %w0; bar.sync 0; xor.b32 %r7, %l, 21; shl.b32 %r7, %r7, 6; add.u32 "  \
			   "%r7, %r7, %s; "                                                                            \
			   "ld.shared.b32 %r0, [%r7]; bar.sync 0;",                                                    \
			4, 0, 80},                                                                                     \
	{                                                                                                              \
		TO_SHARED "cvt.u64.u32 %d4, %r7; cvta.shared.u64 %d4, %d4; st.b32 [%d4], %w0; ld.shared.b32 %r0, "     \
			  "[%r7]; bar.sync 0;",                                                                        \
			4, 0, 80                                                                                       \
	}

/* ---- atomics: what was there, and what is there then ---- */

#define ATOMIC32(op, t)                                                                                                \
	{                                                                                                              \
		"st.global.b32 [%g], %r1; atom.global." op "." t                                                       \
		" %r4, [%g], %r2; ld.global.b32 %r6, [%g]; mov.b64 %d0, {%r4, %r6};",                                  \
			8, 0, 80                                                                                       \
	}
#define ATOMIC64(op, t)                                                                                                \
	{                                                                                                              \
		"st.global.b64 [%g], %d1; atom.global." op "." t                                                       \
		" %d4, [%g], %d2; ld.global.b64 %d5, [%g]; mad.lo.u64 %d0, %d4, 1000003, %d5;",                        \
			8, 0, 80                                                                                       \
	}
#define SHARED32(op, t)                                                                                                \
	{                                                                                                              \
		TO_SHARED "st.shared.b32 [%r7], %r1; atom.shared." op "." t                                            \
			  " %r4, [%r7], %r2; ld.shared.b32 %r6, [%r7]; mov.b64 %d0, {%r4, %r6}; bar.sync 0;",          \
			8, 0, 80                                                                                       \
	}
#define SHARED64(op, t)                                                                                                \
	{                                                                                                              \
		TO_SHARED                                                                                              \
		"st.shared.b64 [%r7], %d1; atom.shared." op "." t                                                      \
		" %d4, [%r7], %d2; ld.shared.b64 %d5, [%r7]; mad.lo.u64 %d0, %d4, 1000003, %d5; bar.sync 0;",          \
			8, 0, 80                                                                                       \
	}
#define EVERYWHERE32(op, t) ATOMIC32(op, t), SHARED32(op, t)
#define EVERYWHERE64(op, t) ATOMIC64(op, t), SHARED64(op, t)
#define REDUCE32(op, t, since)                                                                                         \
	{                                                                                                              \
		"st.global.b32 [%g], %r1; red.relaxed.gpu.global." op "." t " [%g], %r2; ld.global.b32 %r0, [%g];", 4, \
			0, since                                                                                       \
	}
#define ATOMIC16(op, t, since)                                                                                         \
	{                                                                                                              \
		"st.global.b16 [%g], %h1; atom.global." op ".noftz." t                                                 \
		" %h4, [%g], %h2; ld.global.b16 %h5, [%g]; mov.b32 %r0, {%h4, %h5};",                                  \
			4, 0, since                                                                                    \
	}

#define ATOMIC_FORMS                                                                                                   \
	EVERYWHERE32("add", "u32"), EVERYWHERE32("min", "u32"), EVERYWHERE32("min", "s32"),                            \
		EVERYWHERE32("max", "u32"), EVERYWHERE32("max", "s32"), EVERYWHERE32("and", "b32"),                    \
		EVERYWHERE32("or", "b32"), EVERYWHERE32("xor", "b32"), EVERYWHERE32("exch", "b32"),                    \
		EVERYWHERE32("inc", "u32"), EVERYWHERE32("dec", "u32"), EVERYWHERE32("add", "f32"),                    \
		EVERYWHERE64("add", "u64"), EVERYWHERE64("min", "u64"), EVERYWHERE64("min", "s64"),                    \
		EVERYWHERE64("max", "u64"), EVERYWHERE64("max", "s64"), EVERYWHERE64("and", "b64"),                    \
		EVERYWHERE64("or", "b64"), EVERYWHERE64("xor", "b64"), EVERYWHERE64("exch", "b64"),                    \
		EVERYWHERE64("add", "f64"), ATOMIC16("add", "f16", 80), ATOMIC16("add", "bf16", 90),                   \
		ATOMIC32("add.noftz", "f16x2"), REDUCE32("add.noftz", "bf16x2", 90), REDUCE32("add", "u32", 80),       \
		REDUCE32("add", "f32", 80), REDUCE32("add.noftz", "f16x2", 80), REDUCE32("min", "s32", 80),            \
		REDUCE32("or", "b32", 80),                                                                             \
		{"st.global.b32 [%g], %r1; atom.global.cas.b32 %r4, [%g], %r1, %r2; ld.global.b32 %r6, [%g]; mov.b64 " \
		 "%d0, {%r4, %r6};",                                                                                   \
			8, 0, 80},                                                                                     \
		{"st.global.b32 [%g], %r1; atom.global.cas.b32 %r4, [%g], %r2, %r3; ld.global.b32 %r6, [%g]; mov.b64 " \
		 "%d0, {%r4, %r6};",                                                                                   \
			8, 0, 80},                                                                                     \
		{"st.global.b64 [%g], %d1; atom.acq_rel.gpu.global.cas.b64 %d4, [%g], %d1, %d2; ld.global.b64 %d5, "   \
		 "[%g]; mad.lo.u64 %d0, %d4, 3, %d5;",                                                                 \
			8, 0, 80},                                                                                     \
		{"st.global.b16 [%g], %h1; atom.global.cas.b16 %h4, [%g], %h1, %h2; ld.global.b16 %h5, [%g]; mov.b32 " \
		 "%r0, {%h4, %h5};",                                                                                   \
			4, 0, 80},                                                                                     \
		{FILL4 "red.global.add.v2.f32 [%g], {%r1, %r2}; " LOAD4, 8, 0, 90},                                    \
		{FILL4 "red.global.add.v4.f32 [%g], {%r1, %r2, %r3, %w4}; " LOAD4, 8, 0, 90},                          \
		{FILL4 "red.global.add.noftz.v4.f16x2 [%g], {%r1, %r2, %r3, %w4}; " LOAD4, 8, 0, 90},                  \
		{FILL4 "red.global.add.noftz.v4.bf16x2 [%g], {%r1, %r2, %r3, %w4}; " LOAD4, 8, 0, 90},                 \
	{                                                                                                              \
		"bar.sync 0; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.b32 [%s], 5; bar.sync 0; atom.shared.add.u32 "     \
		"%r4, [%s], %w0; "                                                                                     \
		"atom.shared.max.u32 %r4, [%s+0], 0; bar.sync 0; ld.shared.b32 %r0, [%s]; bar.sync 0;",                \
			4, 0, 80                                                                                       \
	}

/* ---- copies that run beside the threads, and what waits for them ---- */

#define COPY(how, bytes, more)                                                                                         \
	{                                                                                                              \
		"bar.sync 0; " FILL4 TO_SHARED "st.shared.v4.b32 [%r7], {%w4, %w5, %w6, %w7}; cp.async." how           \
		" [%r7], [%g], " bytes more "; cp.async.commit_group; cp.async.wait_group 0; "                         \
		"ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r7]; " HASH4 " bar.sync 0;",                             \
			8, 0, 80                                                                                       \
	}
#define MBARRIER(count, what, since)                                                                                   \
	{                                                                                                              \
		TO_SHARED "mbarrier.init.shared.b64 [%r7], " count "; " what                                           \
			  " mbarrier.inval.shared.b64 [%r7]; bar.sync 0;",                                             \
			8, 0, since                                                                                    \
	}
#define STATE "mbarrier.arrive.shared.b64 %d4, [%r7]; "
#define PENDING "mbarrier.pending_count.b64 %r4, %d4; "
#define TESTED "mbarrier.test_wait.shared.b64 %p1, [%r7], %d4; " WITH_FLAG
#define EVEN "mov.b32 %r4, 0; mbarrier.test_wait.parity.shared.b64 %p1, [%r7], 0; " WITH_FLAG
#define ODD "mov.b32 %r4, 0; mbarrier.test_wait.parity.shared.b64 %p1, [%r7], 1; " WITH_FLAG

#define ASYNC_FORMS                                                                                                    \
	COPY("ca.shared.global", "4", ""), COPY("ca.shared.global", "8", ""), COPY("ca.shared.global", "16", ""),      \
		COPY("cg.shared.global", "16", ""), COPY("cg.shared.global", "16", ", 12"),                            \
		COPY("cg.shared.global", "16", ", 0"), COPY("ca.shared.global", "8", ", 4"),                           \
		COPY("ca.shared.global", "4", ", 1"), COPY("cg.shared.global.L2::128B", "16", ""),                     \
		MBARRIER("1", STATE PENDING TESTED, 80), MBARRIER("2", STATE PENDING TESTED, 80),                      \
		MBARRIER("5", STATE STATE PENDING TESTED, 80), MBARRIER("1", EVEN, 80), MBARRIER("1", ODD, 80),        \
		MBARRIER("1", STATE EVEN, 80), MBARRIER("1", STATE ODD, 80), MBARRIER("1", STATE STATE EVEN, 80),      \
		MBARRIER("2", STATE STATE STATE PENDING EVEN, 80),                                                     \
		MBARRIER("7", "mbarrier.arrive.noComplete.shared.b64 %d4, [%r7], 3; " STATE PENDING TESTED, 80),       \
		MBARRIER("3", "mbarrier.arrive_drop.shared.b64 %d4, [%r7]; " STATE STATE STATE PENDING TESTED, 80),    \
		MBARRIER("9", "mbarrier.arrive.shared.b64 %d4, [%r7], 4; " STATE PENDING TESTED, 90),                  \
		MBARRIER("1", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r7], 16; " STATE EVEN, 90),            \
		MBARRIER("1",                                                                                          \
			"mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 16; "                                          \
			"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r7], 16; " EVEN,                           \
			90),                                                                                           \
		{"bar.sync 0; " FILL4 TO_SHARED                                                                        \
		 "mbarrier.init.shared.b64 [%r7+16], 1; fence.mbarrier_init.release.cluster; fence.proxy.async; "      \
		 "mbarrier.arrive.expect_tx.shared.b64 _, [%r7+16], 16; "                                              \
		 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%g], 16, [%r7+16]; "       \
		 "$L_bulk: "                                                                                           \
		 "mbarrier.try_wait.parity.shared.b64 %p1, [%r7+16], 0; @!%p1 bra $L_bulk; "                           \
		 "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r7]; " HASH4                                            \
		 " mbarrier.inval.shared.b64 [%r7+16]; bar.sync 0;",                                                   \
			8, 0, 90},                                                                                     \
		{TO_SHARED "st.shared.v4.b32 [%r7], {%w0, %w1, %w2, %w3}; fence.proxy.async; "                         \
			   "cp.async.bulk.global.shared::cta.bulk_group [%g], [%r7], 16; cp.async.bulk.commit_group; " \
			   "cp.async.bulk.wait_group 0; "                                                              \
			   "fence.proxy.async; " LOAD4 " bar.sync 0;",                                                 \
			8, 0, 90},                                                                                     \
		BULK_REDUCE("add", "u32"), BULK_REDUCE("min", "s32"), BULK_REDUCE("max", "u32"),                       \
		BULK_REDUCE("inc", "u32"), BULK_REDUCE("or", "b32"), BULK_REDUCE("add", "u64"),                        \
		BULK_REDUCE("add.noftz", "f16"), BULK_REDUCE("add.noftz", "bf16"), BULK_REDUCE("min", "f16"),          \
		BULK_REDUCE("max", "bf16"), BULK_REDUCE("add", "f32")
#define BULK_REDUCE(op, t)                                                                                             \
	{                                                                                                              \
		TO_SHARED FILL4                                                                                        \
			"st.shared.v4.b32 [%r7], {%w4, %w5, %w6, %w7}; fence.proxy.async; fence.proxy.async.global; "  \
			"cp.reduce.async.bulk.global.shared::cta.bulk_group." op "." t                                 \
			" [%g], [%r7], 16; cp.async.bulk.commit_group; "                                               \
			"cp.async.bulk.wait_group 0; fence.proxy.async; " LOAD4 " bar.sync 0;",                        \
			8, 0, 90                                                                                       \
	}

/* ---- matrices ---- */

/* words whose numbers are 1/2 or 1 with a sign, so that every sum is exact in any order */
#define NUMBERS(and, or)                                                                                               \
	"and.b32 %x0, %w0, " and "; or.b32 %x0, %x0, " or "; and.b32 %x1, %w1, " and "; or.b32 %x1, %x1, " or          \
		"; "                                                                                                   \
		"and.b32 %x2, %w2, " and                                                                               \
			"; or.b32 %x2, %x2, " or                                                                       \
		"; and.b32 %x3, %w3, " and "; or.b32 %x3, %x3, " or                                                    \
		"; "                                                                                                   \
		"and.b32 %x4, %w4, " and                                                                               \
			"; or.b32 %x4, %x4, " or                                                                       \
		"; and.b32 %x5, %w5, " and "; or.b32 %x5, %x5, " or "; "
#define F16_NUMBERS NUMBERS("0x84008400", "0x38003800")
#define BF16_NUMBERS NUMBERS("0x80808080", "0x3f003f00")
#define TF32_NUMBERS NUMBERS("0x80800000", "0x3f000000")
#define E4M3_NUMBERS NUMBERS("0x88888888", "0x30303030")
#define E5M2_NUMBERS NUMBERS("0x84848484", "0x38383838")
#define INTEGERS NUMBERS("-1", "0")
#define F32_SUM "and.b32 %x6, %w6, 0x80800000; or.b32 %x6, %x6, 0x3f000000; mov.b32 %x7, 0; "
#define F16_SUM "and.b32 %x6, %w6, 0x84008400; or.b32 %x6, %x6, 0x38003800; mov.b32 %x7, 0; "
#define I32_SUM "mov.b32 %x6, %w6; mov.b32 %x7, %w7; "
#define D4 "{%r10, %r11, %r12, %r13}"
#define C4 "{%x6, %x7, %x6, %x6}; "
#define A1 "{%x0}"
#define A2 "{%x0, %x1}"
#define A4 "{%x0, %x1, %x2, %x3}"
#define B1 "{%x4}"
#define B2 "{%x4, %x5}"
#define MMA4(numbers, sum, shape, types, a, b, since)                                                                  \
	{                                                                                                              \
		numbers sum "mma.sync.aligned." shape ".row.col." types " " D4 ", " a ", " b ", " C4 HASH4, 8, 0,      \
			since                                                                                          \
	}
#define MMA2(numbers, sum, shape, types, a, b)                                                                         \
	{                                                                                                              \
		numbers sum "mma.sync.aligned." shape ".row.col." types " {%r10, %r11}, " a ", " b                     \
			    ", {%x6, %x7}; " HASH2,                                                                    \
			8, 0, 80                                                                                       \
	}
#define SIGNS8(shape, a, b, s)                                                                                         \
	MMA4(INTEGERS, I32_SUM, shape, "s32.s8.s8.s32", a, b, 80),                                                     \
		MMA4(INTEGERS, I32_SUM, shape, "s32.u8.s8.s32", a, b, 80),                                             \
		MMA4(INTEGERS, I32_SUM, shape, "s32.s8.u8.s32", a, b, 80),                                             \
		MMA4(INTEGERS, I32_SUM, shape, "s32.u8.u8.s32", a, b, 80)
#define STAGE                                                                                                          \
	"bar.sync 0; shl.b32 %r7, %t, 4; add.u32 %r7, %r7, %s; st.shared.v4.b32 [%r7], {%w0, %w1, %w2, %w3}; "         \
	"bar.sync 0; "
#define UNSTAGE "bar.sync 0; ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r7]; " HASH4 " bar.sync 0;"
#define LDMATRIX(x, list, zero)                                                                                        \
	{                                                                                                              \
		STAGE zero "ldmatrix.sync.aligned.m8n8." x ".shared.b16 " list ", [%r7]; " HASH4 " bar.sync 0;", 8, 0, \
			80                                                                                             \
	}
#define STMATRIX(x, list)                                                                                              \
	{                                                                                                              \
		STAGE "stmatrix.sync.aligned.m8n8." x ".shared.b16 [%r7], " list "; " UNSTAGE, 8, 0, 90                \
	}
#define ZERO3 "mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0; "
#define ZERO2 "mov.b32 %r12, 0; mov.b32 %r13, 0; "

#define MATRIX_FORMS                                                                                                   \
	LDMATRIX("x1", "{%r10}", ZERO3), LDMATRIX("x2", "{%r10, %r11}", ZERO2), LDMATRIX("x4", D4, ""),                \
		LDMATRIX("x1.trans", "{%r10}", ZERO3), LDMATRIX("x2.trans", "{%r10, %r11}", ZERO2),                    \
		LDMATRIX("x4.trans", D4, ""), STMATRIX("x1", "{%w4}"), STMATRIX("x2", "{%w4, %w5}"),                   \
		STMATRIX("x4", "{%w4, %w5, %w6, %w7}"), STMATRIX("x1.trans", "{%w4}"),                                 \
		STMATRIX("x2.trans", "{%w4, %w5}"), STMATRIX("x4.trans", "{%w4, %w5, %w6, %w7}"),                      \
		{"movmatrix.sync.aligned.m8n8.trans.b16 %r0, %w0;", 4, 0, 80},                                         \
		MMA4(F16_NUMBERS, F32_SUM, "m16n8k8", "f32.f16.f16.f32", A2, B1, 80),                                  \
		MMA4(F16_NUMBERS, F32_SUM, "m16n8k16", "f32.f16.f16.f32", A4, B2, 80),                                 \
		MMA2(F16_NUMBERS, F16_SUM, "m16n8k8", "f16.f16.f16.f16", A2, B1),                                      \
		MMA2(F16_NUMBERS, F16_SUM, "m16n8k16", "f16.f16.f16.f16", A4, B2),                                     \
		MMA4(BF16_NUMBERS, F32_SUM, "m16n8k8", "f32.bf16.bf16.f32", A2, B1, 80),                               \
		MMA4(BF16_NUMBERS, F32_SUM, "m16n8k16", "f32.bf16.bf16.f32", A4, B2, 80),                              \
		MMA4(TF32_NUMBERS, F32_SUM, "m16n8k4", "f32.tf32.tf32.f32", A2, B1, 80),                               \
		MMA4(TF32_NUMBERS, F32_SUM, "m16n8k8", "f32.tf32.tf32.f32", A4, B2, 80),                               \
		SIGNS8("m16n8k16", A2, B1, 80), SIGNS8("m16n8k32", A4, B2, 80),                                        \
		MMA4(INTEGERS, I32_SUM, "m16n8k32", "satfinite.s32.s8.s8.s32", A4, B2, 80),                            \
		MMA2(INTEGERS, I32_SUM, "m8n8k16", "s32.s8.s8.s32", A1, B1),                                           \
		MMA2(INTEGERS, I32_SUM, "m8n8k16", "s32.u8.u8.s32", A1, B1),                                           \
		MMA4(E4M3_NUMBERS, F32_SUM, "m16n8k32", "f32.e4m3.e4m3.f32", A4, B2, 90),                              \
		MMA4(E5M2_NUMBERS, F32_SUM, "m16n8k32", "f32.e5m2.e5m2.f32", A4, B2, 90),                              \
	{                                                                                                              \
		"cvt.rn.f64.s32 %d4, %w0; cvt.rn.f64.s32 %d5, %w1; cvt.rn.f64.s8 %d6, %w2; cvt.rn.f64.s8 %d7, %w3; "   \
		"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d4, %d5}, {%d6}, {%d7}, {%d4, %d5}; mad.lo.u64 "    \
		"%d0, %d4, 1000003, %d5;",                                                                             \
			8, 0, 80                                                                                       \
	}

/* wgmma: A fills 8 KiB from %s on and B the 2 KiB behind, each thread a 16th of a row */
#define TILES(numbers)                                                                                                 \
	"bar.sync 0; " numbers                                                                                         \
	"shl.b32 %r7, %t, 6; add.u32 %r7, %r7, %s; st.shared.v4.b32 [%r7], {%x0, %x1, %x2, %x3}; "                     \
	"st.shared.v4.b32 [%r7+16], {%x4, %x5, %x0, %x1}; st.shared.v4.b32 [%r7+32], {%x3, %x5, %x2, %x0}; "           \
	"st.shared.v4.b32 [%r7+48], {%x1, %x4, %x4, %x3}; "                                                            \
	"shl.b32 %r7, %t, 4; add.u32 %r7, %r7, %s; st.shared.v4.b32 [%r7+8192], {%x2, %x1, %x5, %x0}; "                \
	"fence.proxy.async; bar.sync 0; "                                                                              \
	"shr.u32 %r7, %s, 4; and.b32 %r7, %r7, 0x3fff; cvt.u64.u32 %d4, %r7; "
#define PLAIN "or.b64 %d4, %d4, 0x0000001000080000; "
#define SWIZZLE32 "or.b64 %d4, %d4, 0xc000001000010000; "
#define SWIZZLE64 "or.b64 %d4, %d4, 0x8000002000010000; "
#define SWIZZLE128 "or.b64 %d4, %d4, 0x4000004000010000; "
#define MULTIPLY(numbers, layout, types, a, more)                                                                      \
	{                                                                                                              \
		TILES(numbers)                                                                                         \
		layout "add.u64 %d5, %d4, 512; mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0; "   \
		       "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned." types " " D4 ", " a ", %d5, 1" more   \
		       "; "                                                                                            \
		       "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; " HASH4 " bar.sync 0;",      \
			8, 0, 91                                                                                       \
	}
#define LAYOUTS(numbers, types, more)                                                                                  \
	MULTIPLY(numbers, PLAIN, types, "%d4", more), MULTIPLY(numbers, SWIZZLE32, types, "%d4", more),                \
		MULTIPLY(numbers, SWIZZLE64, types, "%d4", more), MULTIPLY(numbers, SWIZZLE128, types, "%d4", more)

#define WARPGROUP_FORMS                                                                                                \
	LAYOUTS(F16_NUMBERS, "m64n8k16.f32.f16.f16", ", 1, 1, 0, 0"),                                                  \
		LAYOUTS(BF16_NUMBERS, "m64n8k16.f32.bf16.bf16", ", 1, 1, 0, 0"),                                       \
		LAYOUTS(TF32_NUMBERS, "m64n8k8.f32.tf32.tf32", ", 1, 1"),                                              \
		LAYOUTS(E4M3_NUMBERS, "m64n8k32.f32.e4m3.e4m3", ", 1, 1"),                                             \
		LAYOUTS(INTEGERS, "m64n8k32.s32.s8.s8", ""),                                                           \
		MULTIPLY(E5M2_NUMBERS, PLAIN, "m64n8k32.f32.e5m2.e5m2", "%d4", ", 1, 1"),                              \
		MULTIPLY(INTEGERS, PLAIN, "m64n8k32.s32.u8.u8", "%d4", ""),                                            \
		MULTIPLY(INTEGERS, PLAIN, "m64n8k32.s32.s8.u8", "%d4", ""),                                            \
		MULTIPLY(F16_NUMBERS, PLAIN, "m64n8k16.f32.f16.f16", "%d4", ", -1, 1, 0, 0"),                          \
		MULTIPLY(F16_NUMBERS, PLAIN, "m64n8k16.f32.f16.f16", "%d4", ", 1, 1, 1, 1"),                           \
		MULTIPLY(F16_NUMBERS, SWIZZLE128, "m64n8k16.f32.f16.f16", A4, ", 1, 1, 0"),                            \
		MULTIPLY(INTEGERS, SWIZZLE128, "m64n8k32.s32.s8.s8", A4, "")

#endif
