// blk's grammar for tree-sitter, rule by rule that of compiler/syntax/grammar.y.  tools/editors.py says which of the
// lexer's words and signs are missing here; what is coloured is in queries/highlights.scm, which it makes.

const PREC = { ternary: 1, or: 2, and: 3, compare: 4, bit_or: 5, bit_xor: 6, bit_and: 7, shift: 8, sum: 9, product: 10, unary: 11, postfix: 12 };
const BINARY = [
  [PREC.or, ["||"]], [PREC.and, ["&&"]], [PREC.compare, ["<", "<=", ">", ">=", "==", "!="]], [PREC.bit_or, ["|"]],
  [PREC.bit_xor, ["^"]], [PREC.bit_and, ["&"]], [PREC.shift, ["<<", ">>"]], [PREC.sum, ["+", "-"]],
  [PREC.product, ["*", "/", "%"]],
];
const ASSIGN = ["=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="];

const RULES = ["where", "tolerance", "order", "try"];
const BUFFERS = ["reset", "restore", "scratch"];

const list1 = (rule) => seq(rule, repeat(seq(",", rule)), optional(","));
const list = (rule) => optional(list1(rule));

module.exports = grammar({
  name: "blk",
  extras: ($) => [/\s/, $.comment],
  word: ($) => $.identifier,
  supertypes: ($) => [$._expression, $._statement],

  rules: {
    source_file: ($) => repeat(choice($.import, $.constant, $.function, $.kernel, $.autotune)),

    // ---- declarations ----
    import: ($) => seq("import", $.string, ";"),
    constant: ($) => seq("const", field("name", $.identifier), optional($._type), "=", field("value", $._expression), ";"),
    function: ($) =>
      seq("fn", field("name", $.identifier), field("parameters", $.parameters), optional(seq("->", field("result", $._expression))), field("body", $.block)),
    kernel: ($) =>
      seq("kernel", field("name", $.identifier), field("parameters", $.parameters), repeat(choice($.grid, $.options, $.requires)), field("body", $.block)),
    parameters: ($) => seq("(", list($.parameter), ")"),
    parameter: ($) => seq(optional("const"), field("name", $.identifier), optional($._type), optional(seq("=", field("value", $._expression), optional($._bounds)))),
    _bounds: ($) => seq("in", field("low", $._expression), "..", field("high", $._expression)),
    _type: ($) => seq(":", field("type", $._expression)),
    grid: ($) => seq("grid", "(", list1($._expression), ")"),
    options: ($) => seq(choice("options", "cost"), "(", list1($.named_argument), ")"),
    requires: ($) => seq("requires", $._expression, optional(seq(",", $.string))),

    // ---- autotune ----
    autotune: ($) =>
      seq("autotune", field("name", $.identifier), choice(repeat($.key), field("parameters", $.parameters)), "{", repeat($._item), "}"),
    key: ($) => seq("key", "(", list1($._expression), ")"),
    _item: ($) => choice($.axes, $.config, $.use, $.rule, $.buffers),
    axes: ($) => seq(list1($.axis), ";"),
    // Words that begin an item may be parameters' names too.
    axis: ($) => seq(field("name", choice($.identifier, alias(choice("config", ...RULES, ...BUFFERS), $.identifier))), ":", "[", list1($._expression), "]"),
    config: ($) => seq("config", "(", list1($.named_argument), ")", ";"),
    use: ($) => seq("import", field("name", $.identifier), $.arguments, ";"),
    rule: ($) => seq(choice(...RULES), $._expression, ";"),
    buffers: ($) => seq(choice(...BUFFERS), list1($.identifier), ";"),

    // ---- statements ----
    block: ($) => seq("{", repeat($._statement), "}"),
    _statement: ($) => choice($.block, $.constant, $.binding, $.assignment, $.expression_statement, $.return, $.break, $.continue, $.while, $.for, $.if),
    binding: ($) => seq(choice("let", "var"), field("pattern", choice($.identifier, $.pattern)), optional($._type), "=", field("value", $._expression), ";"),
    pattern: ($) => choice(seq("(", list1($.identifier), ")"), seq("[", list1($.identifier), "]")),
    assignment: ($) => seq(field("left", $._expression), choice(...ASSIGN), field("right", $._expression), ";"),
    expression_statement: ($) => seq($._expression, ";"),
    return: ($) => seq("return", optional($._expression), ";"),
    break: () => seq("break", ";"),
    continue: () => seq("continue", ";"),
    while: ($) => seq("while", field("condition", $._expression), field("body", $.block)),
    for: ($) => seq("for", field("name", $.identifier), "in", field("range", $._expression), field("body", $.block)),
    if: ($) => seq("if", field("condition", $._expression), field("then", $.block), optional(seq("else", field("else", choice($.block, $.if))))),

    // ---- expressions ----
    _expression: ($) =>
      choice($.ternary, $.binary, $.unary, $.pointer, $.integer, $.float, $.literal, $.string, $.identifier, $.parenthesized, $.tuple, $.list,
        $.member, $.call, $.index),
    ternary: ($) => prec.right(PREC.ternary, seq($._expression, "?", $._expression, ":", $._expression)),
    binary: ($) => choice(...BINARY.map(([level, signs]) =>
      prec.left(level, seq(field("left", $._expression), field("operator", choice(...signs)), field("right", $._expression))))),
    unary: ($) => prec(PREC.unary, seq(field("operator", choice("-", "!", "~")), $._expression)),
    pointer: ($) => prec(PREC.unary, seq("*", optional("const"), $._expression)),
    literal: () => choice("true", "false", "None", "inf", "nan"),
    parenthesized: ($) => seq("(", $._expression, ")"),
    tuple: ($) => seq("(", optional(seq($._expression, ",", list($._expression))), ")"),
    list: ($) => seq("[", list($._expression), "]"),
    member: ($) => prec(PREC.postfix, seq($._expression, ".", field("name", $.identifier))),
    call: ($) => prec(PREC.postfix, seq(field("function", $._expression), $.arguments)),
    arguments: ($) => seq("(", list(choice($._expression, $.named_argument)), ")"),
    named_argument: ($) => seq(field("name", $.identifier), "=", field("value", $._expression)),
    index: ($) => prec(PREC.postfix, seq($._expression, "[", list1(choice($._expression, $.slice)), "]")),
    slice: () => ":",

    // ---- tokens; strings that stand side by side are one ----
    string: ($) => prec.right(repeat1($.string_part)),
    string_part: () => /"([^"\\\n]|\\[^\n])*"/,
    integer: () => /0|[1-9][0-9]*(_[0-9]+)*|0x[0-9a-fA-F]+(_[0-9a-fA-F]+)*|0b[01]+(_[01]+)*/,
    float: () => {
      const digits = /[0-9]+(_[0-9]+)*/, exponent = seq(/[eE][+-]?/, digits);
      return token(choice(seq(digits, ".", digits, optional(exponent)), seq(digits, exponent)));
    },
    identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
    comment: () => token(choice(seq("//", /[^\n]*/), seq("/*", /([^*]|\*+[^*\/])*\*+/, "/"))),
  },
});
