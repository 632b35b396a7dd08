; Colours of blk for tree-sitter, made by tools/editors.py.  A later pattern wins.
(identifier) @variable
(parameter name: (identifier) @variable.parameter)
(named_argument name: (identifier) @variable.parameter)
(member name: (identifier) @property)
(call function: (identifier) @function.call)
(call function: (member name: (identifier) @function.call))
((identifier) @type.builtin
  (#match? @type.builtin "^(f8e4m3|f8e5m2|tensor|shape|bf16|bool|type|f16|f32|f64|i16|i32|i64|u16|u32|u64|i8|u8)$"))
(call function: (identifier) @function.builtin
  (#match? @function.builtin "^(inverse_cbrt_tail_f32|inverse_cbrt_tail_f64|gemm_cluster_columns|online_softmax_start|gemm_cluster_rows|stirling_tail_f32|stirling_tail_f64|uniform_from_bits|associative_scan|gemm_accumulator|gemm_waves_split|hyperbolic_parts|gemm_split_rows|gemm_waves_grid|gemm_waves_part|lgamma_positive|lgamma_tail_f32|lgamma_tail_f64|reduce_exponent|remainder_float|gemm_is_inside|gemm_pair_tile|gemm_parts_sum|gemm_tile_grid|log10_of_parts|max_contiguous|nextafter_bits|online_softmax|scale_by_power|sinpi_tail_f32|sinpi_tail_f64|asin_tail_f32|asin_tail_f64|atan_tail_f32|atan_tail_f64|copysign_bits|cosh_tail_f32|cosh_tail_f64|debug_barrier|erfc_tail_f32|erfc_tail_f64|float_of_bits|gemm_place_of|gemm_programs|gemm_round_up|gemm_sum_pair|max_constancy|sinh_tail_f32|sinh_tail_f64|static_assert|broadcast_to|exp_tail_f32|exp_tail_f64|lgamma_float|num_programs|power_of_two|reduce_angle|static_print|static_range|tan_tail_f32|tan_tail_f64|acosh_float|asinh_float|atan2_float|atanh_float|atomic_xchg|exp10_float|expand_dims|gemm_number|gemm_result|hypot_float|log10_float|log1p_float|multiple_of|next_extent|normal_pair|trunc_float|acos_float|asin_float|atan_float|atomic_add|atomic_and|atomic_cas|atomic_max|atomic_min|atomic_xor|cbrt_float|check_seed|cosh_float|erfc_float|float_bits|fmod_float|gemm_batch|gemm_block|gemm_check|gemm_lines|gemm_place|gemm_plain|gemm_saved|gemm_scale|gemm_split|gemm_store|gemm_tiles|gemm_waves|inline_asm|interleave|is_integer|montgomery|program_id|sinh_float|zeros_like|asin_part|atan_part|atomic_or|bits_type|block_ptr|full_like|gemm_cost|gemm_fits|gemm_grid|gemm_pair|gemm_part|gemm_tile|histogram|log_float|next_pow2|randint4x|swizzle2d|tan_float|with_sign|exp_part|gemm_add|gemm_dot|gemm_put|gemm_sum|isfinite|popcount|advance|cumprod|gemm_at|maximum|minimum|permute|randint|randn4x|reshape|sigmoid|softmax|sqrt_rn|squeeze|xor_sum|arange|argmax|argmin|assume|cumsum|div_rn|gather|philox|rand4x|reduce|umulhi|clamp|expm1|floor|isinf|isnan|log1p|randn|range|ravel|round|rsqrt|split|store|trans|where|zeros|brev|cdiv|ceil|exp2|flip|full|gelu|gemm|join|load|log2|rand|relu|silu|sort|sqrt|tanh|topk|wide|abs|all|any|cat|clz|cos|ctz|dot|erf|exp|fma|log|max|min|pow|sin|sum)$"))
(function name: (identifier) @function)
(kernel name: (identifier) @function)
(autotune name: (identifier) @function)
(axis name: (identifier) @property)
(literal) @constant.builtin
[(integer) (float)] @number
(string_part) @string
(comment) @comment
[
  "break"
  "continue"
  "else"
  "for"
  "if"
  "in"
  "return"
  "while"
] @keyword.control
[
  "autotune"
  "const"
  "fn"
  "import"
  "kernel"
  "let"
  "var"
] @keyword
[
  "config"
  "cost"
  "grid"
  "key"
  "options"
  "order"
  "requires"
  "reset"
  "restore"
  "scratch"
  "tolerance"
  "try"
  "where"
] @keyword.directive
[
  "!"
  "!="
  "%"
  "%="
  "&"
  "&&"
  "&="
  "*"
  "*="
  "+"
  "+="
  "-"
  "-="
  "->"
  ".."
  "/"
  "/="
  "<"
  "<<"
  "<<="
  "<="
  "="
  "=="
  ">"
  ">="
  ">>"
  ">>="
  "?"
  "^"
  "^="
  "|"
  "|="
  "||"
  "~"
] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" ":" "."] @punctuation.delimiter
