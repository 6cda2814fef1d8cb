# SPDX-License-Identifier: BSD-3-Clause
# What a program of parc takes, from its --help, which the parser makes of its one table: a line each, of fields with a tab
# between them. What kind it is (command, operand, flag, value: the next word is its value; optional: a value may follow
# after =), the name, what the value is (words with | between them where it is one of them, - where there is none), and the sentence
# of the help. Set into the completions of bash and zsh, so there is no apostrophe in it.
function flush() {
  for (i = 1; i <= names; i++) print kind "\t" name[i] "\t" values "\t" sentence
  names = 0
}
/^[^ ]/ { flush(); part = $1; next }
substr($0, 1, 30) ~ /^ +$/ { # the sentence of a name that left no room beside it
  if (!below++) sentence = substr($0, 31)
  next
}
part == "Subcommands:" && /^  [a-z]/ {
  flush()
  sub(/^ */, "")
  word = $1
  sub(/^[^ ]* */, "")
  print "command\t" word "\t-\t" $0
}
part == "Positionals:" && /^  [A-Z]/ {
  flush()
  print "operand\t" $1 "\t-\t" substr($0, 31)
}
part == "Options:" && /^  -/ {
  flush()
  sentence = substr($0, 31)
  below = 0
  beside = substr($0, length($1) + 3, 2) # one space: what its value is, unless the sentence begins there
  values = beside ~ /^ [^ ]/ && length($1) < 28 || index($2, "{") ? $2 : ""
  if (values ~ /:$/) values = "" # what it excludes
  kind = values == "" ? "flag" : "value"
  if (values == "") values = "-"
  if (sub(/\{[^}]*\}/, "", $1)) kind = "optional"
  if (match(values, /\{.*\}/)) { # any of a set
    values = substr(values, RSTART + 1, RLENGTH - 2)
    gsub(/,/, "|", values)
  }
  names = split($1, name, ",")
}
END { flush() }
