# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# The text format of Prometheus, and the rules of "promtool check metrics": HELP
# and TYPE before each metric, once; counters, and no others, end with _total;
# base units; histograms of ascending buckets with +Inf and a count.

function bad(what)
{
	print FILENAME ":" FNR ": " what ": " $0
	failed = 1
}

function end_of_metric()
{
	if (name != "" && !nr)
		bad("no sample of " name)
	if (type == "histogram" && (bucket != "+Inf" || !has_count))
		bad("no +Inf or no count of " name)
}

/^# HELP / {
	end_of_metric()
	name = $3
	type = bucket = ""
	nr = has_count = 0
	if (name in seen || !/^# HELP parklot_[a-z_]+ [A-Z].*\.$/)
		bad("no description, or the second")
	seen[name] = 1
	next
}

/^# TYPE / {
	type = $4
	if ($3 != name || type !~ /^(counter|gauge|histogram)$/)
		bad("no HELP before TYPE")
	if ((type == "counter") != (name ~ /_total$/))
		bad("counters end with _total, others do not")
	if (name ~ /_(ns|us|ms|s|nanoseconds|milliseconds)(_|$)/)
		bad("no base unit")
	if (type == "histogram" && name !~ /_seconds$/)
		bad("no unit")
	next
}

{
	metric = $1
	sub(/\{.*/, "", metric)
	nr++
	if ($1 in samples)
		bad("the second of its name")
	samples[$1] = 1
	if (type == "" || !/^[a-z_]+\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\} [0-9.]+$/)
		bad("no sample")
}

type == "histogram" && metric == name "_bucket" {
	if (!match($0, /le="[^"]*"/))
		bad("no bucket")
	bound = substr($0, RSTART + 4, RLENGTH - 5)
	if (bucket != "" && ($NF < count || (bound != "+Inf" &&
	    bound + 0 <= bucket + 0)))
		bad("buckets descend")
	bucket = bound
	count = $NF + 0
	next
}

type == "histogram" && metric == name "_count" {
	has_count = 1
	if ($NF != count)
		bad("the count is not that of the last bucket")
	next
}

metric != name { bad("it is not of " name) }

END {
	end_of_metric()
	exit failed || FNR < 60
}
