# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Four ranks at a network of two leaf switches and a spine, each switch a process of its own and
# no manager; to be sourced behind tap.sh.

cat >at.sh <<'END'
	leaf=$((16711680 + MUSTER_RANK / 2))
	MUSTER_WIRE=switch MUSTER_FABRIC="$1" MUSTER_UPLINK=$leaf,1
	export MUSTER_WIRE MUSTER_FABRIC MUSTER_UPLINK
	shift
	exec "$@"
END

# apart_open NAME: the switches listen; their processes are $leaf_0, $leaf_1 and $spine
apart_open() {
	apart_wire=unix:@muster-apart-$$-$1
	for switch in 0 1 2; do
		: >ready
		"$MUSTER_BUILD/tools/muster-switchd" -t fat-tree:2x2x1 -w "$apart_wire" -s $switch >ready 2>>errors &
		case $switch in
		0) leaf_0=$! ;;
		1) leaf_1=$! ;;
		2) spine=$! ;;
		esac
		within 300 grep -q ready ready
	done
	trap apart_close EXIT
}

apart_close() {
	kill "$leaf_0" "$leaf_1" "$spine" 2>/dev/null || :
}

# apart_start: ranks that go on with allreduces of 16 MiB; the job is $runner
apart_start() {
	rm -f out err
	"$MUSTER_BUILD/tools/muster-run" --grace 800 -n 4 sh at.sh "$apart_wire" \
		"$MUSTER_BUILD/selftests/switched" chaos >out 2>err &
	runner=$!
}
