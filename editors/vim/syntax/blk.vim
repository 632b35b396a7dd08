" Vim syntax file for blk, made by tools/editors.py
if exists("b:current_syntax")
  finish
endif
syn keyword blkControl break continue else for if in return while
syn keyword blkDeclare autotune const fn import kernel let var
syn keyword blkLiteral None false inf nan true
syn keyword blkType bf16 bool f16 f32 f64 f8e4m3 f8e5m2 i16 i32 i64 i8 shape tensor type u16 u32 u64 u8
syn match blkFunction /\<\%(abs\|acos_float\|acosh_float\|advance\|all\|any\|arange\|argmax\|argmin\|asin_float\|asin_part\|asin_tail_f32\|asin_tail_f64\|asinh_float\|associative_scan\|assume\|atan2_float\|atan_float\|atan_part\|atan_tail_f32\|atan_tail_f64\|atanh_float\|atomic_add\|atomic_and\|atomic_cas\|atomic_max\|atomic_min\|atomic_or\|atomic_xchg\|atomic_xor\|bits_type\|block_ptr\|brev\|broadcast_to\|cat\|cbrt_float\|cdiv\|ceil\|check_seed\|clamp\|clz\|copysign_bits\|cos\|cosh_float\|cosh_tail_f32\|cosh_tail_f64\|ctz\|cumprod\|cumsum\|debug_barrier\|div_rn\|dot\|erf\|erfc_float\|erfc_tail_f32\|erfc_tail_f64\|exp\|exp10_float\|exp2\|exp_part\|exp_tail_f32\|exp_tail_f64\|expand_dims\|expm1\|flip\|float_bits\|float_of_bits\|floor\|fma\|fmod_float\|full\|full_like\|gather\|gelu\|gemm\|gemm_accumulator\|gemm_add\|gemm_at\|gemm_batch\|gemm_block\|gemm_check\|gemm_cluster_columns\|gemm_cluster_rows\|gemm_cost\|gemm_dot\|gemm_fits\|gemm_grid\|gemm_is_inside\|gemm_lines\|gemm_number\|gemm_pair\|gemm_pair_tile\|gemm_part\|gemm_parts_sum\|gemm_place\|gemm_place_of\|gemm_plain\|gemm_programs\|gemm_put\|gemm_result\|gemm_round_up\|gemm_saved\|gemm_scale\|gemm_split\|gemm_split_rows\|gemm_store\|gemm_sum\|gemm_sum_pair\|gemm_tile\|gemm_tile_grid\|gemm_tiles\|gemm_waves\|gemm_waves_grid\|gemm_waves_part\|gemm_waves_split\|histogram\|hyperbolic_parts\|hypot_float\|inline_asm\|interleave\|inverse_cbrt_tail_f32\|inverse_cbrt_tail_f64\|is_integer\|isfinite\|isinf\|isnan\|join\|lgamma_float\|lgamma_positive\|lgamma_tail_f32\|lgamma_tail_f64\|load\|log\|log10_float\|log10_of_parts\|log1p\|log1p_float\|log2\|log_float\|max\|max_constancy\|max_contiguous\|maximum\|min\|minimum\|montgomery\|multiple_of\|next_extent\|next_pow2\|nextafter_bits\|normal_pair\|num_programs\|online_softmax\|online_softmax_start\|permute\|philox\|popcount\|pow\|power_of_two\|program_id\|rand\|rand4x\|randint\|randint4x\|randn\|randn4x\|range\|ravel\|reduce\|reduce_angle\|reduce_exponent\|relu\|remainder_float\|reshape\|round\|rsqrt\|scale_by_power\|sigmoid\|silu\|sin\|sinh_float\|sinh_tail_f32\|sinh_tail_f64\|sinpi_tail_f32\|sinpi_tail_f64\|softmax\|sort\|split\|sqrt\|sqrt_rn\|squeeze\|static_assert\|static_print\|static_range\|stirling_tail_f32\|stirling_tail_f64\|store\|sum\|swizzle2d\|tan_float\|tan_tail_f32\|tan_tail_f64\|tanh\|topk\|trans\|trunc_float\|umulhi\|uniform_from_bits\|where\|wide\|with_sign\|xor_sum\|zeros\|zeros_like\)\ze\s*(/
syn match blkClause /\<\%(config\|cost\|grid\|key\|options\|order\|requires\|reset\|restore\|scratch\|tolerance\|try\)\ze\s*(/
syn match blkClause /^\s*\%(config\|cost\|grid\|key\|options\|order\|requires\|reset\|restore\|scratch\|tolerance\|try\|where\)\>\ze\s\+[^=;]/
syn match blkClause /\<requires\>/
syn match blkNumber /\<\%(0x\x[0-9A-Fa-f_]*\|0b[01][01_]*\|\d[0-9_]*\%(\.\d\+\)\?\%([eE][-+]\?\d\+\)\?\)\>/
syn region blkString start=/"/ skip=/\\./ end=/"/ end=/$/
syn keyword blkTodo TODO FIXME XXX contained
syn match blkComment +//.*$+ contains=blkTodo,@Spell
syn region blkComment start=+/\*+ end=+\*/+ contains=blkTodo,@Spell
hi def link blkControl Statement
hi def link blkDeclare Keyword
hi def link blkClause PreProc
hi def link blkLiteral Constant
hi def link blkType Type
hi def link blkFunction Function
hi def link blkNumber Number
hi def link blkString String
hi def link blkTodo Todo
hi def link blkComment Comment
let b:current_syntax = "blk"
